// Algorithm 3.1 as it is printed, in plain C++ and doubles, its errata repaired (core/README.md).
//
// Source: Li et al., ICPE 2020. As printed, one queue holds the running chunks of all workers; at
// every event the earliest is looked for at the present shares, and the remaining work of every
// other is reduced, so an event costs O(workers). The listing sorts its queue to find the earliest;
// a scan finds it for less. One server, streams whole. Of RunOptions it takes steps, offsets, seed
// and replication; all else is as by default.
#pragma once

#include <vector>

#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "tests/bench/peers/flat_graph.h"
#include "tests/bench/peers/peer_result.h"

namespace stepcast::bench {

class PseudoCodePeer {
 public:
  // REQUIRES: one server; no transfer is split.
  explicit PseudoCodePeer(const Program& graph);

  PeerResult Run(const RunOptions& options) const;

 private:
  FlatGraph graph_;
  std::vector<double> seconds_;  // step-major
};

}  // namespace stepcast::bench
