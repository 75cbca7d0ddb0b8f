// The cuts of an acyclic graph: nodes that every other one is before or behind, directly or through
// others, as the loss of a training step.
//
// Cost: linear in nodes and edges. Threads: a pure function.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

// The nodes that wait for each node, one list after the other: node n's are those from
// targets[first[n]] to before targets[first[n + 1]].
struct TargetLists {
  std::vector<int32_t> first{0};
  std::vector<int32_t> targets;

  int32_t size() const { return static_cast<int32_t>(first.size()) - 1; }
  // The list of the next node is what was added to `targets` since the last one's.
  void EndNode() { first.push_back(static_cast<int32_t>(targets.size())); }
};

// The nodes that are cuts. REQUIRES: no cycle.
std::vector<bool> CutsOf(const TargetLists& lists);

}  // namespace stepcast
