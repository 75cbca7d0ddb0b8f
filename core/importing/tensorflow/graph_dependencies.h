// The dependencies between recorded nodes, found by following the graph backwards to the nearest
// recorded ones.
//
// Nodes that were not recorded (folded, fed, or only there to send and receive) are passed through.
// Between machines the way leads over the transfer that carried the tensor: by the _Send and _Recv
// pair of its name and devices in partition graphs, by the sending node's name in a graph that is
// given.
// Edges that lead back into a loop's next round are not followed.
// Cost: each node's way back to recorded ones; all of them together have a limit.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

#include "core/importing/tensorflow/recorded_rows.h"
#include "core/importing/tensorflow/tensorflow_graph.h"
#include "core/model/profile_limits.h"

namespace stepcast {

class GraphDependencies {
 public:
  // `kept`: the recorded nodes that become operations. Borrows all.
  GraphDependencies(const RecordedRows& rows, const TensorflowGraph& graph,
                    const std::vector<bool>& kept, const ProfileLimits& limits);

  // For each recorded node the kept ones that it waits for, ascending; empty for those not kept.
  // Fails where an upload has no sender in the graph, or at the limit.
  absl::StatusOr<std::vector<std::vector<int32_t>>> Find();

  // The node of the graph that a recorded one is; of a transfer the one that sends it. -1: none.
  int32_t graph_node(int32_t recorded) const { return graph_of_[static_cast<size_t>(recorded)]; }

 private:
  void IndexTransfer(int32_t recorded);
  absl::Status Follow(int32_t recorded, std::vector<int32_t>& waiting_for);
  void Push(int32_t node, const RecordedNode& consumer, std::vector<int32_t>& waiting_for);
  void PushInputs(int32_t node, const RecordedNode& consumer, std::vector<int32_t>& waiting_for);

  const RecordedRows& rows_;
  const TensorflowGraph& graph_;
  const std::vector<bool>& kept_;
  const ProfileLimits& limits_;
  std::vector<int32_t> graph_of_;     // by recorded node
  std::vector<int32_t> recorded_of_;  // by node of the graph; -1: not kept
  absl::flat_hash_map<std::string, int32_t> transfer_of_tensor_;  // by tensor key
  absl::flat_hash_map<int32_t, std::vector<int32_t>>
      transfers_of_node_;         // by sending node of the graph, where it is given
  std::vector<int32_t> seen_by_;  // by node of the graph: whose way passed there last
  std::vector<int32_t> stack_;
  int64_t visits_ = 0;
};

}  // namespace stepcast
