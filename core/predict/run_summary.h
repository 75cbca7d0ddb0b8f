// The summary of one run: all that its replications need of it, without its completions.
//
// Memory: 10 to 30 KiB, whatever the length of the run.
// Threads: none; immutable once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/step_time_histogram.h"
#include "core/engine/simulation.h"
#include "core/predict/run_estimate.h"

namespace stepcast {

struct RunSummary {
  RunEstimate estimate;
  double drift = 0;  // second half minus first half of the counted time, in steps per second
  StepTimeHistogram step_times;
  std::vector<double> utilization;  // by lane
  double exposed_communication_fraction = 0;
  double straggler_fraction = 0;
  int64_t simulated_operations = 0;
  EnginePath path = EnginePath::kPlain;

  // The size of all it holds, itself included, to within what the allocator adds.
  size_t bytes() const;
};

// `automatic_warmup`: see EstimateOf. REQUIRES: result.measured.
RunSummary SummaryOf(const RunResult& result, bool automatic_warmup);

}  // namespace stepcast
