// The simulated points of a job's throughput curve.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/allocate/allocation_job.h"
#include "core/allocate/throughput_curve.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/simulation_options.h"
#include "core/predict/throughput.h"

namespace stepcast {

struct JobCurve {
  ThroughputCurve curve;
  double one_worker_examples_per_second = 0;  // the reference that speedup is measured against
  std::vector<Warning> warnings;              // of the points and the one worker, WarningsByWorkers
  SimulationStatistics simulation;
};

// The number of points to simulate.
int64_t PointsOf(const AllocationJob& job);

// Failure: as PredictThroughput.
absl::StatusOr<JobCurve> SimulateCurve(const AllocationJob& job, const SimulationOptions& options,
                                       StopCheck stop, const Executor& executor);

}  // namespace stepcast
