// The throughput curve of a job: its speed with any number of workers that it may get.
//
// Between two simulated numbers throughput is interpolated linearly.
// Threads: a curve is immutable once filled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/allocate/allocation_query.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/throughput.h"

namespace stepcast {

struct CurvePoint {
  int32_t workers = 0;
  int32_t servers = 0;
  double examples_per_second = 0;
  Interval confidence_interval;
  double deviation = 0;  // of examples_per_second, by the chance of the simulation
};

struct CurveValue {
  double examples_per_second = 0;
  double deviation = 0;
  bool interpolated = false;
};

// The counts to simulate, of some that ascend.
// All where they are at most kMaxPlainCounts, else the lowest, the highest, and between them each
// the first that is at least a fifth above the one before.
inline constexpr size_t kMaxPlainCounts = 16;
std::vector<int32_t> CountsToSimulate(const std::vector<int32_t>& counts);

class ThroughputCurve {
 public:
  // Points come in ascending order of servers, then workers.
  void Add(const CurvePoint& point) { points_.push_back(point); }
  const std::vector<CurvePoint>& points() const { return points_; }

  // REQUIRES: between the lowest and the highest number of workers with those servers. Cost: O(log
  // points).
  CurveValue At(int32_t workers, int32_t servers) const;

 private:
  std::vector<CurvePoint> points_;
};

// The simulated points of a job's throughput curve.
struct JobCurve {
  ThroughputCurve curve;
  double one_worker_examples_per_second = 0;  // the reference that speedup is measured against
  std::vector<Warning> warnings;              // of the points and the one worker, WarningsByWorkers
  std::vector<Assumption> assumptions;        // of the same
  SimulationStatistics simulation;
};

// The number of points to simulate.
int64_t PointsOf(const AllocationJob& job);

// Threads: pure function. Failure: as PredictThroughput.
absl::StatusOr<JobCurve> SimulateCurve(const AllocationJob& job, const SimulationOptions& options,
                                       StopCheck stop, const Executor& executor);

}  // namespace stepcast
