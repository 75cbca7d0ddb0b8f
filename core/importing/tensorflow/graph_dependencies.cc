#include "core/importing/tensorflow/graph_dependencies.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "core/base/message_text.h"
#include "core/importing/common/recording_options.h"
#include "core/importing/tensorflow/tensorflow_names.h"
#include "core/model/fault_list.h"

namespace stepcast {

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
