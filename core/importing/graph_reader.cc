#include "core/importing/graph_reader.h"

#include <google/protobuf/wire_format_lite.h>

#include <string>

#include "tensorflow/graph.pb.h"

namespace stepcast {

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

}  // namespace stepcast
