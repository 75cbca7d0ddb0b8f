// A bare pass of list scheduling over a step, again and again: one worker alone, every lane first
// come first served, every transfer at full speed.
//
// No sharing, no statistics, no events but one place a lane: about the least that any simulator of
// the graph has to do. Of RunOptions it takes steps, offset, seed and replication.
#pragma once

#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "tests/bench/peers/flat_graph.h"
#include "tests/bench/peers/peer_result.h"

namespace stepcast::bench {

class ListSchedulingPeer {
 public:
  // REQUIRES: no transfer is split.
  explicit ListSchedulingPeer(const Program& graph) : graph_(graph) {}

  // REQUIRES: one worker.
  PeerResult Run(const RunOptions& options) const;

 private:
  FlatGraph graph_;
};

}  // namespace stepcast::bench
