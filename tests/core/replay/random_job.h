// Random jobs of several workers: programs, lanes of all roles, a shared link, meetings, releases
// between workers, and collectives.
#pragma once

#include <cstdint>

#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"

namespace stepcast::testing {

struct RandomJob {
  JobGraph job;
  RunOptions options;
};

// The same for the same seed, everywhere. Half of them have collectives.
RandomJob MakeRandomJob(uint64_t seed);

}  // namespace stepcast::testing
