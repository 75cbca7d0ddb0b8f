// The methods of a request for advice on communication, each tried on one job: every candidate is
// simulated shortly, and the best one of each method in full.
//
// Threads: none; the runs are the parts given to the executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "core/advise/communication_query.h"
#include "core/advise/gradient_chain.h"
#include "core/advise/overlap_model.h"
#include "core/advise/thread_allocation.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/predict/point_set.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The least gain that counts as one: means are known to about that.
inline constexpr double kLeastGain = 0.005;

// A point of the sweep over PyTorch's cap.
struct BucketCapPoint {
  int64_t cap_bytes = 0;
  double step_seconds = 0;
  double examples_per_second = 0;
  Interval confidence_interval;  // of examples_per_second
};

// Indices below are of the point set.
struct TriedMethods {
  size_t base = 0;                                     // the job as it is, which has run
  std::vector<std::pair<TuningMethod, size_t>> found;  // the best of each method, as asked for
  std::unique_ptr<const GradientChain> chain;          // null: time was spent before
  // The chain as LIBRA sees it, from the first computation that a gradient waits for.
  std::vector<BackwardLayer> layers;
  std::vector<BucketCapPoint> curve;  // of kDdpBuckets, by ascending cap
  std::optional<size_t> libra;        // kLibra's point
  ThreadAllocation allocation;        // of it
};

// A spent time budget leaves out what was not reached. REQUIRES: the scenario is of the query, the
// query and the set of the profile. Failure: what `stop` returns, TimeBudgetSpent() if nothing was
// simulated.
absl::StatusOr<TriedMethods> TryMethods(const Profile& profile, const Scenario& scenario,
                                        const TuningQuery& query, PointSet& points, StopCheck stop,
                                        const Executor& executor);

// The mean over the point's runs. 0: it was not reached.
double StepsPerSecond(const PointSet& points, size_t index);

// The job's all-reduces as LIBRA's model knows them. REQUIRES: the scenario is of
// collectives.
OverlapSetting OverlapSettingOf(const Scenario& scenario);

}  // namespace stepcast
