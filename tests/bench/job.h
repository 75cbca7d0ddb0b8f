// A training job: what the engine and every peer are given to simulate.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"

namespace stepcast::bench {

struct Job {
  std::shared_ptr<const Program> program;
  double bandwidth_bytes_per_second = 0;
  int64_t recorded_step_ns = 0;  // mean length of the recorded steps
};

// A network of the model zoo with batches of 32, on links of 10 Gbit/s, in twenty recorded steps
// whose computations vary by a tenth. REQUIRES: the zoo has the model.
Profile ZooProfile(std::string_view model);
Job ZooJob(std::string_view model, int32_t servers = 1);

// A network made of random layers, each with its download, forward and backward computation, upload
// and update, one in eight also fed by an earlier one; computing and communicating take about as
// long. In `recorded_steps` steps. The same for the same seed.
Job LayeredJob(int32_t layers, int32_t recorded_steps, uint64_t seed);

// The engine's, with so many workers: asynchronous, streams whole, in graph order.
JobGraph JobGraphOf(const Job& job, int32_t workers);

// Asynchronous, streams whole, in graph order; workers start at random instants of a first step, so
// that they are not all in step.
RunOptions OptionsFor(const Job& job, int32_t workers, int32_t steps_per_worker);
// As many steps as make at least so many operations of all workers together, and at least two.
RunOptions OptionsForOperations(const Job& job, int32_t workers, int64_t operations);

}  // namespace stepcast::bench
