// The result of a peer's simulation.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/bench/cost.h"

namespace stepcast::bench {

struct PeerResult {
  Cost cost;  // of the simulation alone: no preparation of the graph or the platform
  std::vector<std::vector<double>> step_ends;  // by worker, in seconds
};

}  // namespace stepcast::bench
