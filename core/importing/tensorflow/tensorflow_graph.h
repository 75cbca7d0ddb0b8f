// The nodes of a TensorFlow graph and what each of them waits for, and the dependencies between
// recorded nodes that follow from them.
//
// Either the graph as it was defined, or the parts that devices executed: those know where each
// node ran, and the _Send and _Recv nodes between them. A node that comes again is the same node.
// Memory: names and edges, within the limits of a profile. Threads: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/importing/tensorflow/recorded_rows.h"
#include "core/model/profile.h"

namespace stepcast {

// A node as a reader finds it.
struct GraphNodeText {
  std::string name;
  std::string op;
  std::string device;
  std::vector<std::string> inputs;  // `name`, `name:output` or `^name`
  std::string tensor;               // of _Send and _Recv
  std::string source;
  std::string destination;
  int64_t elements = -1;  // of a variable; -1: not known
  int32_t data_type = 0;
};

class TensorflowGraph {
 public:
  enum class Kind : uint8_t { kOther, kSend, kReceive, kVariable, kUpdate, kPassing, kLoop };

  struct Input {
    int32_t node = 0;
    bool control = false;
  };

  struct Node {
    std::string name;
    Kind kind = Kind::kOther;
    bool defined = false;  // else only named by others
    std::vector<Input> inputs;
    std::string tensor;           // of kSend and kReceive: the key both share
    int64_t variable_bytes = -1;  // of kVariable; -1: not known
  };

  // `partitioned`: names count for each device by itself. `where`: the field of faults.
  TensorflowGraph(bool partitioned, const char* where, const ProfileLimits& limits)
      : partitioned_(partitioned), where_(where), limits_(limits) {}

  // Fails where a node is defined twice, differently, or a limit is passed.
  absl::Status Add(const GraphNodeText& text);

  bool partitioned() const { return partitioned_; }
  bool empty() const { return defined_ == 0; }
  size_t size() const { return nodes_.size(); }
  const Node& node(int32_t index) const { return nodes_[static_cast<size_t>(index)]; }
  // -1: there is none that is defined.
  int32_t Find(std::string_view device, std::string_view name) const;
  // The _Send node of a tensor; -1: there is none.
  int32_t FindSender(const std::string& tensor_key) const;
  // The variable that the node is, hands on, reads or updates: itself, or what its first input
  // leads to through nodes that only hand on. -1: none.
  int32_t VariableOf(int32_t index) const;

  static std::string TensorKey(std::string_view tensor, std::string_view source,
                               std::string_view destination);
  static Kind KindOf(std::string_view op);

 private:
  int32_t Named(const std::string& device, std::string_view name);
  absl::Status AddInputs(const GraphNodeText& text, std::vector<Input>& inputs);

  const bool partitioned_;
  const char* const where_;
  const ProfileLimits& limits_;
  int64_t defined_ = 0;
  int64_t inputs_ = 0;
  std::vector<Node> nodes_;
  absl::flat_hash_map<std::string, absl::flat_hash_map<std::string, int32_t>>
      by_device_;                                      // then by name
  absl::flat_hash_map<std::string, int32_t> senders_;  // by tensor key
};

class WireReader;

// Reads the serialised GraphDef that is the reader's next message, node by node. Constants and
// whatever else is not needed are passed over without being kept.
absl::Status ReadNestedGraph(WireReader& reader, TensorflowGraph& graph);
// The same where the GraphDef is all there is.
absl::Status ReadWholeGraph(WireReader& reader, TensorflowGraph& graph);

// The dependencies between recorded nodes, found by following the graph backwards to the nearest
// recorded ones.
//
// Nodes that were not recorded (folded, fed, or only there to send and receive) are passed through.
// Between machines the way leads over the transfer that carried the tensor: by the _Send and _Recv
// pair of its name and devices in partition graphs, by the sending node's name in a graph that is
// given.
// Edges that lead back into a loop's next round are not followed.
// Cost: each node's way back to recorded ones; all of them together have a limit.
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
