#include "core/allocate/job_share.h"

#include <limits>

namespace stepcast {

namespace {

JobShare ShareAt(const AllocationJob& job, const ThroughputCurve& curve, int32_t workers,
                 int32_t servers, double one_worker_examples_per_second) {
  const CurveValue value = curve.At(workers, servers);
  JobShare share{.workers = workers,
                 .servers = servers,
                 .examples_per_second = value.examples_per_second,
                 .interpolated = value.interpolated};
  double rate = value.examples_per_second;
  if (job.remaining_examples > 0) {
    const auto examples = static_cast<double>(job.remaining_examples);
    const bool rescaled = job.current_workers > 0 &&
                          (workers != job.current_workers || servers != job.current_servers);
    share.duration_seconds = examples / rate + (rescaled ? job.rescale_seconds : 0);
    rate = examples / *share.duration_seconds;
  }
  share.speedup = rate / one_worker_examples_per_second;
  share.utility = job.weight * share.speedup;
  return share;
}

}  // namespace

std::vector<JobShare> SharesOf(const AllocationJob& job, const ThroughputCurve& curve,
                               double one_worker_examples_per_second) {
  std::vector<JobShare> shares;
  if (job.may_rest) shares.emplace_back();
  for (const Scenario& choice : job.server_choices) {
    for (const int32_t workers : job.worker_counts) {
      shares.push_back(
          ShareAt(job, curve, workers, choice.servers().servers, one_worker_examples_per_second));
    }
  }
  return shares;
}

double MeritOf(const JobShare& share, const AllocationJob& job, AllocationObjective objective) {
  if (objective == AllocationObjective::kTotalUtility) return share.utility;
  if (objective == AllocationObjective::kMaxMinFair) return share.speedup / job.weight;
  return share.duration_seconds ? -*share.duration_seconds
                                : -std::numeric_limits<double>::infinity();
}

}  // namespace stepcast
