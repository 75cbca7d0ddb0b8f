// The allocation of a cluster's workers and servers to jobs.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/allocate/allocation_query.h"
#include "core/allocate/throughput_curve.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/scenario.h"
#include "core/predict/certainty.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The shares of a cluster that a job may get, each with its value to the job.
//
// A job's speedup is its examples per second over those of its own one worker; its utility is
// weight x speedup.
// Speedups can be added over unlike jobs, examples cannot: Pollux (Qiao et al., OSDI 2021)
// maximises their mean, and their minimum in the limit; that a share is fair where weighted,
// normalised throughputs are max-min is also Gavel's (Narayanan et al., OSDI 2020).
// The rate is that over the rest of the job, a rescale included, where the remaining examples are
// known.
// Threads: pure functions.

// A share that a job may get, and its value.
struct JobShare {
  int32_t workers = 0;  // 0: none
  int32_t servers = 0;
  double examples_per_second = 0;  // while it runs
  bool interpolated = false;
  double speedup = 0;
  double utility = 0;
  double deviation = 0;                    // of it, by the chance of the simulation
  std::optional<double> duration_seconds;  // of the remaining examples, a rescale included; none
                                           // where not known, or without workers
};

// Every share that the job may get, that of no workers first where it may rest. REQUIRES: the curve
// holds, for every choice of servers, the lowest and the highest count.
std::vector<JobShare> SharesOf(const AllocationJob& job, const ThroughputCurve& curve,
                               double one_worker_examples_per_second);

// The merit by which shares are compared: utility; speedup / weight; or how early the job ends.
double MeritOf(const JobShare& share, const AllocationJob& job, AllocationObjective objective);

struct JobAllocation {
  absl::Status status;  // not OK: why the job could not be looked at; it gets nothing then
  JobShare share;
  ChoiceEdge workers_edge = ChoiceEdge::kNone;
  std::vector<CurvePoint> curve;
  std::vector<Warning> warnings;  // of the curve, WarningsByWorkers
  std::vector<Assumption> assumptions;
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
  int64_t devices = 0;  // that it is made of; 0: capacity counts workers
  std::vector<Change> changes;
};

struct AllocationAnswer {
  std::vector<JobAllocation> jobs;  // in the order asked for
  double total_utility = 0;
  double objective_value = 0;  // total utility; least speedup / weight; longest duration
  int32_t workers = 0;
  int32_t servers = 0;
  int64_t devices = 0;
  OneMoreWorker one_more_worker;
  // That no exchange is better in which one job gets its next larger number of workers from another
  // that goes down to its next smaller; of kTotalUtility only, and with the same servers.
  std::optional<Settled> settled;
  std::string infeasible_reason;  // the capacity below the jobs' minimums, and by how much
  SimulationStatistics simulation;
};

// Simulated points of all jobs together.
inline constexpr int64_t kMaxAllocationPoints = 8192;

// The best by the objective, exactly (ShareExactly), over curves that are simulated at few points
// and interpolated (ThroughputCurve).
//
// The capacity counts workers, which then are all made of as many devices, or devices, of which
// each job's workers take theirs; one more worker is then one of those made of the fewest.
// Cost: PredictThroughput for every job's points, and the search, twice.
// Failure: what `stop` returns, a spent time budget included while curves are not done;
// INVALID_ARGUMENT, reason ALLOCATION_TOO_LARGE, beyond kMaxAllocationPoints or SearchLimits, and
// REQUEST_INVALID where workers are counted that are made of unlike numbers of devices. What
// else a job's simulation fails with is that job's own.
absl::StatusOr<AllocationAnswer> AllocateWorkers(const AllocationQuery& query, StopCheck stop,
                                                 const Executor& executor = InOrder());

}  // namespace stepcast
