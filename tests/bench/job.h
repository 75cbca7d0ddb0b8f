// A training job: what the engine and every peer are given to simulate.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/engine/job_graph.h"
#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast::bench {

struct Job {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Ranking> ranking;  // of its transfers
  double bandwidth_bytes_per_second = 0;
  int64_t recorded_step_ns = 0;  // mean length of the recorded steps
};

// A network of the model zoo with batches of 32, on links of 10 Gbit/s, in twenty recorded steps
// whose computations vary by a tenth. REQUIRES: the zoo has the model.
Profile ZooProfile(std::string_view model);
Job ZooJob(std::string_view model, int32_t servers = 1);

// ZooJob with its transfers in an order, and stopped by a window, where that is not 0.
Job OrderedZooJob(std::string_view model, TransferOrder order, int64_t window_bytes = 0);
// The job of OrderedZooJob for whoever serves downloads in graph order: they come first in the
// graph, in that order. REQUIRES: the order ranks all downloads, and nothing else.
Job RearrangedZooJob(std::string_view model, TransferOrder order);

// A network made of random layers, each with its download, forward and backward computation, upload
// and update, one in eight also fed by an earlier one; computing and communicating take about as
// long. In `recorded_steps` steps. The same for the same seed.
Job LayeredJob(int32_t layers, int32_t recorded_steps, uint64_t seed);

// The engine's, with so many workers: asynchronous.
JobGraph JobGraphOf(const Job& job, int32_t workers);

// Asynchronous; workers start at random instants of a first step, so
// that they are not all in step.
RunOptions OptionsFor(const Job& job, int32_t workers, int32_t steps_per_worker);
// As many steps as make at least so many operations of all workers together, and at least two.
RunOptions OptionsForOperations(const Job& job, int32_t workers, int64_t operations);

}  // namespace stepcast::bench
