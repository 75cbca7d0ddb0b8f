// Random jobs to hold the engine against the naive simulation: small, and full of what is easy to
// get wrong.
//
// Half of them have round numbers, so that many things happen at one instant, the others ugly ones.
// Half are shaped as training steps (downloads, forward and backward computation with branches,
// uploads, updates), the others any graph at all, its operations in no topological order.
#pragma once

#include <cstdint>

#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "tests/core/engine/naive_simulation.h"

namespace stepcast::testing {

struct RandomCase {
  Profile profile;
  Scenario scenario;
  int steps_per_worker = 0;
  int warmup_steps = 0;
  bool round_numbers = false;
  bool training_shape = false;
};

// The same case for the same seed, everywhere.
RandomCase MakeRandomCase(uint64_t seed);
// With servers that sum, and in half of the training steps downloads of sums that the workers apply
// themselves.
RandomCase MakeSummedCase(uint64_t seed);
// With links that are served in turns; in a quarter of the cases servers sum.
RandomCase MakeTurnsCase(uint64_t seed);

// The job of a case, and how the engine runs it, step ends kept.
JobGraph EngineJob(const RandomCase& random_case);
RunOptions EngineOptions(const RandomCase& random_case, uint64_t seed);

// The engine's random choices, as the naive simulation is told of them: the recorded steps it
// samples, and its random orders. The job must outlive the result.
NaiveOptions NaiveOptionsFor(const RandomCase& random_case, const JobGraph& job,
                             const RunOptions& engine_options);

}  // namespace stepcast::testing
