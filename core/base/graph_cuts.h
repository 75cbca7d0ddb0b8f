// The cuts of an acyclic graph: nodes that every other one is before or behind, directly or through
// others, as the loss of a training step.
//
// Cost: linear in nodes and edges. Threads: a pure function.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

// The nodes that are cuts. `targets`: by node, those that wait for it; no cycle.
std::vector<bool> CutsOf(const std::vector<std::vector<int32_t>>& targets);

}  // namespace stepcast
