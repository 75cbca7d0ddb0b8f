// The shares of a cluster that a job may get, each with its value to the job.
//
// A job's speedup is its examples per second over those of its own one worker; its utility is
// weight x speedup.
// Speedups can be added over unlike jobs, examples cannot: Pollux (Qiao et al., OSDI 2021)
// maximises their mean, and their minimum in the limit; that a share is fair where weighted,
// normalised throughputs are max-min is also Gavel's (Narayanan et al., OSDI 2020).
// Where the remaining examples are known the rate is that over the rest of the job, a rescale
// included.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/allocate/allocation_job.h"
#include "core/allocate/throughput_curve.h"

namespace stepcast {

// A share that a job may get, and its value.
struct JobShare {
  int32_t workers = 0;  // 0: none
  int32_t servers = 0;
  double examples_per_second = 0;  // while it runs
  bool interpolated = false;
  double speedup = 0;
  double utility = 0;
  std::optional<double> duration_seconds;  // of the remaining examples, a rescale included; none
                                           // where not known, or without workers
};

// Every share that the job may get, that of no workers first where it may rest. REQUIRES: the curve
// holds, for every choice of servers, the lowest and the highest count.
std::vector<JobShare> SharesOf(const AllocationJob& job, const ThroughputCurve& curve,
                               double one_worker_examples_per_second);

// The merit by which shares are compared: utility; speedup / weight; or how early the job ends.
double MeritOf(const JobShare& share, const AllocationJob& job, AllocationObjective objective);

}  // namespace stepcast
