// SimGrid simulating the same job, as fast as it can be made to (README.md says what was tried).
//
// Each worker is a host with a host for each of its places on the servers; operations are
// activities started from completion callbacks, no actors at all. A lane runs one at a time, first
// come first served, which the peer sees to; how links are shared is SimGrid's business. With one
// server a flow crosses that server's link of its direction, with several its worker's too.
// SimGrid's state is the process's, so every run is in a process of its own.
#pragma once

#include "core/engine/simulation.h"
#include "tests/bench/job.h"
#include "tests/bench/peers/flat_graph.h"
#include "tests/bench/peers/peer_result.h"

namespace stepcast::bench {

class SimGridPeer {
 public:
  // REQUIRES: no transfer is split.
  explicit SimGridPeer(const Job& job);

  // Of RunOptions it takes steps, offsets, seed and replication. Throws
  // std::runtime_error where the process fails.
  PeerResult Run(const RunOptions& options) const;

 private:
  int32_t servers_;
  double bytes_per_second_;
  FlatGraph graph_;
  std::vector<int64_t> bytes_;  // by operation
};

// The same of a job whose workers meet in collectives, one at a time, and compute on one stream: a
// host a worker, and one whose work is the collective under way.
PeerResult RunSimGridCollectives(const JobGraph& job, const RunOptions& options);

}  // namespace stepcast::bench
