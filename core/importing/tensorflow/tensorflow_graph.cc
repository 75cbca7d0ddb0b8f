#include "core/importing/tensorflow/tensorflow_graph.h"

#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/common/wire_reader.h"
#include "core/importing/tensorflow/recorded_rows.h"
#include "tensorflow/graph.pb.h"

namespace stepcast {

namespace {

using Kind = TensorflowGraph::Kind;

bool IsOneOf(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool BeginsWithOneOf(std::string_view op, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [op](std::string_view prefix) {
    return op.substr(0, prefix.size()) == prefix;
  });
}

// By the numbers of TensorFlow's DataType; references to a type are a hundred above it. 0: of no
// fixed size.
int64_t BytesOf(int32_t data_type) {
  constexpr int32_t kReferences = 100;
  const int32_t type = data_type > kReferences ? data_type - kReferences : data_type;
  switch (type) {
    case 4:   // uint8
    case 6:   // int8
    case 10:  // bool
      return 1;
    case 5:   // int16
    case 14:  // bfloat16
    case 17:  // uint16
    case 19:  // half
      return 2;
    case 1:   // float
    case 3:   // int32
    case 22:  // uint32
      return 4;
    case 2:   // double
    case 8:   // complex64
    case 9:   // int64
    case 23:  // uint64
      return 8;
    case 18:  // complex128
      return 16;
    default:
      return 0;
  }
}

bool SameInputs(const std::vector<TensorflowGraph::Input>& a,
                const std::vector<TensorflowGraph::Input>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.node == y.node && x.control == y.control;
  });
}

}  // namespace

Kind TensorflowGraph::KindOf(std::string_view op) {
  if (IsOneOf(op, {"_Send", "_HostSend"})) return Kind::kSend;
  if (IsOneOf(op, {"_Recv", "_HostRecv"})) return Kind::kReceive;
  if (IsOneOf(op, {"Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable"}))
    return Kind::kVariable;
  if (IsOneOf(op, {"Identity", "ReadVariableOp", "RefIdentity", "Enter", "RefEnter"}))
    return Kind::kPassing;
  if (IsOneOf(op, {"NextIteration", "RefNextIteration"})) return Kind::kLoop;
  if (BeginsWithOneOf(op, {"Apply", "ResourceApply", "SparseApply", "ResourceSparseApply", "Assign",
                           "Scatter", "ResourceScatter"})) {
    return Kind::kUpdate;
  }
  return Kind::kOther;
}

std::string TensorflowGraph::TensorKey(std::string_view tensor, std::string_view source,
                                       std::string_view destination) {
  return absl::StrCat(AbslView(tensor), "\n", AbslView(source), "\n", AbslView(destination));
}

int32_t TensorflowGraph::Named(const std::string& device, std::string_view name) {
  const auto [found, is_new] = by_device_[partitioned_ ? device : std::string()].try_emplace(
      AbslView(name), static_cast<int32_t>(nodes_.size()));
  if (is_new) nodes_.push_back({.name = std::string(name)});
  return found->second;
}

absl::Status TensorflowGraph::AddInputs(const GraphNodeText& text, std::vector<Input>& inputs) {
  for (const std::string& input : text.inputs) {
    const bool control = !input.empty() && input.front() == '^';
    std::string_view name = std::string_view(input).substr(control ? 1 : 0);
    if (name.size() > limits_.max_name_bytes)
      return ImportFault(where_, TooLong(input, "max_name_bytes", limits_.max_name_bytes));
    if (const size_t colon = name.rfind(':'); colon != std::string_view::npos)
      name = name.substr(0, colon);
    inputs.push_back({.node = Named(text.device, name), .control = control});
  }
  inputs_ += static_cast<int64_t>(text.inputs.size());
  if (inputs_ > limits_.max_dependencies)
    return ImportFault(where_, OverLimit(inputs_, "max_dependencies", limits_.max_dependencies));
  return absl::OkStatus();
}

absl::Status TensorflowGraph::Add(const GraphNodeText& text) {
  for (const std::string* name :
       {&text.name, &text.device, &text.tensor, &text.source, &text.destination}) {
    if (name->size() > limits_.max_name_bytes)
      return ImportFault(where_, TooLong(*name, "max_name_bytes", limits_.max_name_bytes));
  }
  const int32_t index = Named(text.device, text.name);
  std::vector<Input> inputs;
  if (absl::Status status = AddInputs(text, inputs); !status.ok()) return status;
  // A node that is only named takes a place, too.
  if (const int64_t count = static_cast<int64_t>(nodes_.size());
      count > 2 * limits_.max_operations) {
    return ImportFault(where_, absl::StrCat("nodes: ", OverLimit(count, "twice max_operations",
                                                                 2 * limits_.max_operations)));
  }
  Node& node = nodes_[static_cast<size_t>(index)];
  const Kind kind = KindOf(text.op);
  const bool sends = kind == Kind::kSend || kind == Kind::kReceive;
  std::string tensor = sends ? TensorKey(text.tensor, text.source, text.destination) : "";
  if (node.defined) {
    if (node.kind == kind && node.tensor == tensor && SameInputs(node.inputs, inputs))
      return absl::OkStatus();
    return ImportFault(
        where_,
        absl::StrCat("node ", Quoted(text.name),
                     " is there twice, with other inputs: the steps are not of the same graph"));
  }
  ++defined_;
  node.kind = kind;
  node.defined = true;
  node.inputs = std::move(inputs);
  node.tensor = std::move(tensor);
  const int64_t element_bytes = BytesOf(text.data_type);
  if (kind == Kind::kVariable && text.elements > 0 && element_bytes > 0 &&
      text.elements <= limits_.max_transfer_bytes / element_bytes) {
    node.variable_bytes = text.elements * element_bytes;
  }
  if (kind == Kind::kSend) senders_.try_emplace(node.tensor, index);
  return absl::OkStatus();
}

int32_t TensorflowGraph::Find(std::string_view device, std::string_view name) const {
  const auto names = by_device_.find(partitioned_ ? AbslView(device) : absl::string_view());
  if (names == by_device_.end()) return -1;
  const auto found = names->second.find(AbslView(name));
  return found != names->second.end() && node(found->second).defined ? found->second : -1;
}

int32_t TensorflowGraph::FindSender(const std::string& tensor_key) const {
  const auto found = senders_.find(tensor_key);
  return found == senders_.end() ? -1 : found->second;
}

int32_t TensorflowGraph::VariableOf(int32_t index) const {
  constexpr int kLongestWay =
      64;  // a cycle of nodes that hand on is no graph of TensorFlow, but may be read
  for (int way = 0; way < kLongestWay; ++way) {
    const Node& at = node(index);
    if (at.kind == Kind::kVariable) return index;
    const bool leads = at.kind == Kind::kPassing || (way == 0 && at.kind != Kind::kReceive);
    if (!leads || at.inputs.empty() || at.inputs.front().control) return -1;
    index = at.inputs.front().node;
  }
  return -1;
}

namespace {

// A node's inputs are all held at once.
constexpr size_t kMaxInputs = size_t{1} << 16;

// Elements of a shape; -1 where it is not known, or beyond any tensor.
int64_t ElementsOf(const tensorflow::TensorShape& shape) {
  constexpr int64_t kMost = int64_t{1} << 50;
  if (shape.unknown_rank()) return -1;
  int64_t elements = 1;
  for (const auto& dimension : shape.dim()) {
    if (dimension.size() < 1 || dimension.size() > kMost / elements) return -1;
    elements *= dimension.size();
  }
  return elements;
}

class NodeReader {
 public:
  explicit NodeReader(WireReader& reader) : reader_(reader) {}

  absl::Status Read(GraphNodeText& node) {
    node = {};
    return reader_.ReadNested([&](uint32_t tag) { return ReadField(tag, node); });
  }

 private:
  absl::Status ReadField(uint32_t tag, GraphNodeText& node) {
    switch (tag) {
      case Nested(tensorflow::NodeDef::kNameFieldNumber):
        return reader_.ReadBytes(node.name);
      case Nested(tensorflow::NodeDef::kOpFieldNumber):
        return reader_.ReadBytes(node.op);
      case Nested(tensorflow::NodeDef::kInputFieldNumber):
        if (node.inputs.size() >= kMaxInputs)
          return reader_.Fail("a node with more than 65536 inputs");
        return reader_.ReadBytes(node.inputs.emplace_back());
      case Nested(tensorflow::NodeDef::kDeviceFieldNumber):
        return reader_.ReadBytes(node.device);
      case Nested(tensorflow::NodeDef::kAttrFieldNumber):
        key_.clear();
        return reader_.ReadNested([&](uint32_t entry) { return ReadAttribute(entry, node); });
      default:
        return reader_.Skip(tag);
    }
  }

  // The key comes first, as every serialiser writes it; a value before its key is passed over.
  absl::Status ReadAttribute(uint32_t tag, GraphNodeText& node) {
    if (tag == Nested(tensorflow::AttrEntry::kKeyFieldNumber)) return reader_.ReadBytes(key_);
    const bool wanted = key_ == "tensor_name" || key_ == "send_device" || key_ == "recv_device" ||
                        key_ == "shape" || key_ == "dtype";
    if (tag != Nested(tensorflow::AttrEntry::kValueFieldNumber) || !wanted)
      return reader_.Skip(tag);
    if (absl::Status status = reader_.ReadMessage(value_); !status.ok()) return status;
    if (key_ == "tensor_name") node.tensor = value_.s();
    if (key_ == "send_device") node.source = value_.s();
    if (key_ == "recv_device") node.destination = value_.s();
    if (key_ == "dtype") node.data_type = value_.type();
    if (key_ == "shape" && value_.has_shape()) node.elements = ElementsOf(value_.shape());
    return absl::OkStatus();
  }

  WireReader& reader_;
  std::string key_;
  tensorflow::AttrValue value_;
};

class GraphReader {
 public:
  GraphReader(WireReader& reader, TensorflowGraph& graph)
      : reader_(reader), node_reader_(reader), graph_(graph) {}

  absl::Status ReadField(uint32_t tag) {
    if (tag != Nested(tensorflow::GraphDef::kNodeFieldNumber)) return reader_.Skip(tag);
    if (absl::Status status = node_reader_.Read(node_); !status.ok()) return status;
    return node_.name.empty() ? reader_.Fail("a node without a name") : graph_.Add(node_);
  }

 private:
  WireReader& reader_;
  NodeReader node_reader_;
  TensorflowGraph& graph_;
  GraphNodeText node_;
};

}  // namespace

absl::Status ReadNestedGraph(WireReader& reader, TensorflowGraph& graph) {
  GraphReader read(reader, graph);
  return reader.ReadNested([&](uint32_t tag) { return read.ReadField(tag); });
}

absl::Status ReadWholeGraph(WireReader& reader, TensorflowGraph& graph) {
  GraphReader read(reader, graph);
  return reader.ReadAll([&](uint32_t tag) { return read.ReadField(tag); });
}

GraphDependencies::GraphDependencies(const RecordedRows& rows, const TensorflowGraph& graph,
                                     const std::vector<bool>& kept, const ProfileLimits& limits)
    : rows_(rows),
      graph_(graph),
      kept_(kept),
      limits_(limits),
      graph_of_(rows.nodes().size(), -1),
      recorded_of_(graph.size(), -1),
      seen_by_(graph.size(), -1) {
  for (size_t i = 0; i < rows.nodes().size(); ++i) {
    const RecordedNode& node = rows.nodes()[i];
    const auto index = static_cast<int32_t>(i);
    if (node.is_transfer()) {
      IndexTransfer(index);
      continue;
    }
    graph_of_[i] = graph.Find(rows.devices()[static_cast<size_t>(node.device)].name, node.name);
    if (kept[i] && graph_of_[i] >= 0) recorded_of_[static_cast<size_t>(graph_of_[i])] = index;
  }
}

void GraphDependencies::IndexTransfer(int32_t recorded) {
  const auto at = static_cast<size_t>(recorded);
  const RecordedNode& node = rows_.nodes()[at];
  const std::string& source = rows_.devices()[static_cast<size_t>(node.source)].name;
  const std::string key = TensorflowGraph::TensorKey(
      node.name, source, rows_.devices()[static_cast<size_t>(node.device)].name);
  if (graph_.partitioned()) graph_of_[at] = graph_.FindSender(key);
  // A sender's part may be missing, or the graph not in parts: the tensor's name tells.
  if (graph_of_[at] < 0) graph_of_[at] = graph_.Find(source, SenderOf(node.name));
  if (!kept_[at]) return;
  transfer_of_tensor_.emplace(key, recorded);
  if (!graph_.partitioned() && graph_of_[at] >= 0)
    transfers_of_node_[graph_of_[at]].push_back(recorded);
}

// Takes what is recorded, and puts off what has to be passed through.
void GraphDependencies::Push(int32_t index, const RecordedNode& consumer,
                             std::vector<int32_t>& waiting_for) {
  const TensorflowGraph::Node& node = graph_.node(index);
  if (node.kind == TensorflowGraph::Kind::kLoop) return;
  if (node.kind == TensorflowGraph::Kind::kReceive) {
    const auto transfer = transfer_of_tensor_.find(node.tensor);
    if (transfer != transfer_of_tensor_.end()) return waiting_for.push_back(transfer->second);
    // Within a machine nothing records it.
    index = graph_.FindSender(node.tensor);
    if (index < 0) return;
  }
  if (const auto transfers = transfers_of_node_.find(index);
      transfers != transfers_of_node_.end() && !consumer.is_transfer()) {
    bool carried = false;
    for (const int32_t transfer : transfers->second) {
      const RecordedNode& candidate = rows_.nodes()[static_cast<size_t>(transfer)];
      if (!rows_.device_of(candidate).same_machine(rows_.device_of(consumer))) continue;
      waiting_for.push_back(transfer);
      carried = true;
    }
    if (carried) return;
  }
  if (const int32_t recorded = recorded_of_[static_cast<size_t>(index)]; recorded >= 0)
    return waiting_for.push_back(recorded);
  stack_.push_back(index);
}

void GraphDependencies::PushInputs(int32_t index, const RecordedNode& consumer,
                                   std::vector<int32_t>& waiting_for) {
  for (const TensorflowGraph::Input& input : graph_.node(index).inputs)
    Push(input.node, consumer, waiting_for);
}

absl::Status GraphDependencies::Follow(int32_t recorded, std::vector<int32_t>& waiting_for) {
  const RecordedNode& node = rows_.nodes()[static_cast<size_t>(recorded)];
  const int32_t start = graph_of_[static_cast<size_t>(recorded)];
  stack_.clear();
  if (start < 0) {
    if (!node.is_transfer() || rows_.device_of(node).role != DeviceRole::kServer)
      return absl::OkStatus();
    return ImportFault(kAtGraph, absl::StrCat("nothing in the graph sends ", Quoted(node.name),
                                              ", which a worker uploaded"));
  }
  if (node.is_transfer() && graph_.node(start).kind != TensorflowGraph::Kind::kSend) {
    Push(start, node, waiting_for);
  } else {
    PushInputs(start, node, waiting_for);
  }
  while (!stack_.empty()) {
    const int32_t index = stack_.back();
    stack_.pop_back();
    if (seen_by_[static_cast<size_t>(index)] == recorded) continue;
    seen_by_[static_cast<size_t>(index)] = recorded;
    visits_ += 1 + static_cast<int64_t>(graph_.node(index).inputs.size());
    if (visits_ > limits_.max_dependencies) {
      return ImportFault(
          kAtGraph, absl::StrCat("ways through nodes that were not recorded: ",
                                 OverLimit(visits_, "max_dependencies", limits_.max_dependencies)));
    }
    PushInputs(index, node, waiting_for);
  }
  std::sort(waiting_for.begin(), waiting_for.end());
  waiting_for.erase(std::unique(waiting_for.begin(), waiting_for.end()), waiting_for.end());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<int32_t>>> GraphDependencies::Find() {
  std::vector<std::vector<int32_t>> waiting_for(rows_.nodes().size());
  int64_t found = 0;
  for (size_t i = 0; i < waiting_for.size(); ++i) {
    if (!kept_[i]) continue;
    if (absl::Status status = Follow(static_cast<int32_t>(i), waiting_for[i]); !status.ok())
      return status;
    found += static_cast<int64_t>(waiting_for[i].size());
    if (found > limits_.max_dependencies)
      return ImportFault(kAtGraph, OverLimit(found, "max_dependencies", limits_.max_dependencies));
  }
  return waiting_for;
}

}  // namespace stepcast
