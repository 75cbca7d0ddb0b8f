// The topological cut of a graph: the place where it is as narrow as one operation.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/orders/transfer_graph.h"

namespace stepcast {

// An operation that waits, directly or through others, for all before it, and that all after it
// wait for; as the loss of a training step.
struct GraphCut {
  int32_t operation = -1;         // -1: there is none
  std::vector<int32_t> up_to_it;  // all that it waits for, and itself; ascending
  friend bool operator==(const GraphCut&, const GraphCut&) = default;
};

// The first computation that is one and that every download is before. Cost: linear.
GraphCut FirstCutBehindDownloads(const TransferGraph& graph);

}  // namespace stepcast
