// Random jobs to hold the engine against the naive simulation: small, and full of what is easy to
// get wrong.
//
// Half of them have round numbers, so that many things happen at one instant, the others ugly ones.
// Half are shaped as training steps (downloads, forward and backward computation with branches,
// uploads, updates), the others any graph at all, its operations in no topological order.
#pragma once

#include <cstdint>

#include "core/engine/simulation.h"
#include "core/engine/step_graph.h"
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

// What the engine runs for a case, step ends kept. REQUIRES: `graph` was built from the case.
RunOptions EngineOptions(const RandomCase& random_case, const StepGraph& graph, uint64_t seed);

// What the naive simulation is told of the engine's random choices: the recorded steps it samples,
// and its random orders.
NaiveOptions NaiveOptionsFor(const RandomCase& random_case, const StepGraph& graph,
                             const RunOptions& engine_options);

}  // namespace stepcast::testing
