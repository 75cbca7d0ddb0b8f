// The allocation of a cluster's workers and servers to jobs.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/allocate/allocation_query.h"
#include "core/allocate/job_share.h"
#include "core/allocate/throughput_curve.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/predict/throughput.h"

namespace stepcast {

struct JobAllocation {
  absl::Status status;  // not OK: why the job could not be looked at; it gets nothing then
  JobShare share;
  std::vector<CurvePoint> curve;
  std::vector<Warning> warnings;  // of the curve, WarningsByWorkers
};

// The marginal gain of one more worker.
struct OneMoreWorker {
  struct Change {
    size_t job = 0;
    int32_t workers = 0;
    int32_t servers = 0;
  };
  double utility_gain = 0;
  double objective_gain = 0;
  std::vector<Change> changes;
};

struct AllocationAnswer {
  std::vector<JobAllocation> jobs;  // in the order asked for
  double total_utility = 0;
  double objective_value = 0;  // total utility; least speedup / weight; longest duration
  int32_t workers = 0;
  int32_t servers = 0;
  OneMoreWorker one_more_worker;
  std::string infeasible_reason;  // the capacity below the jobs' minimums, and by how much
  SimulationStatistics simulation;
};

// Simulated points of all jobs together.
inline constexpr int64_t kMaxAllocationPoints = 8192;

// The best by the objective, exactly (ShareExactly), over curves that are simulated at few points
// and interpolated (ThroughputCurve).
//
// Cost: PredictThroughput for every job's points, and the search, twice.
// Failure: what `stop` returns, a spent time budget included while curves are not done;
// INVALID_ARGUMENT, reason ALLOCATION_TOO_LARGE, beyond kMaxAllocationPoints or SearchLimits. What
// else a job's simulation fails with is that job's own.
absl::StatusOr<AllocationAnswer> AllocateWorkers(const AllocationQuery& query, StopCheck stop,
                                                 const Executor& executor = InOrder());

}  // namespace stepcast
