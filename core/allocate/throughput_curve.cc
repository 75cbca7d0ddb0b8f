#include "core/allocate/throughput_curve.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <tuple>

#include "core/predict/certainty.h"
#include "core/predict/throughput.h"

namespace stepcast {

namespace {

constexpr double kStep = 1.2;

}  // namespace

std::vector<int32_t> CountsToSimulate(const std::vector<int32_t>& counts) {
  if (counts.size() <= kMaxPlainCounts) return counts;
  std::vector<int32_t> chosen = {counts.front()};
  for (const int32_t count : counts) {
    if (count > chosen.back() && (count >= chosen.back() * kStep || count == counts.back()))
      chosen.push_back(count);
  }
  return chosen;
}

CurveValue ThroughputCurve::At(int32_t workers, int32_t servers) const {
  const auto above = std::lower_bound(points_.begin(), points_.end(), std::tuple(servers, workers),
                                      [](const CurvePoint& point, const auto& asked) {
                                        return std::tuple(point.servers, point.workers) < asked;
                                      });
  assert(above != points_.end() && above->servers == servers);
  if (above->workers == workers)
    return {.examples_per_second = above->examples_per_second, .deviation = above->deviation};
  assert(above != points_.begin() && (above - 1)->servers == servers);
  const CurvePoint& below = *(above - 1);
  const double part =
      static_cast<double>(workers - below.workers) / (above->workers - below.workers);
  return {.examples_per_second = below.examples_per_second +
                                 part * (above->examples_per_second - below.examples_per_second),
          .deviation = std::hypot((1 - part) * below.deviation, part * above->deviation),
          .interpolated = true};
}

int64_t PointsOf(const AllocationJob& job) {
  return static_cast<int64_t>(CountsToSimulate(job.worker_counts).size() *
                              job.server_choices.size()) +
         1;
}

absl::StatusOr<JobCurve> SimulateCurve(const AllocationJob& job, const SimulationOptions& options,
                                       StopCheck stop, const Executor& executor) {
  ThroughputQuery query{.scenarios = {job.one_worker}, .options = options, .shared = job.shared};
  for (const Scenario& choice : job.server_choices) {
    for (const int32_t workers : CountsToSimulate(job.worker_counts)) {
      query.scenarios.push_back(job.shared.has_value() ? choice.SharedAmong(workers) : choice);
      query.scenarios.back().workers = workers;
    }
  }
  const absl::StatusOr<ThroughputAnswer> answer =
      PredictThroughput(job.profile, query, stop, executor, job.known);
  if (!answer.ok()) return answer.status();
  JobCurve curve{
      .one_worker_examples_per_second = ExpectedExamplesPerSecond(answer->predictions.front()),
      .warnings = WarningsByWorkers(answer->predictions),
      .simulation = answer->simulation};
  for (size_t i = 1; i < answer->predictions.size(); ++i) {
    const Prediction& prediction = answer->predictions[i];
    // Shares of one batch differ in nothing but it.
    if (!job.shared.has_value() || i == 1) AddAssumptions(prediction.scenario, curve.assumptions);
    curve.curve.Add({.workers = prediction.scenario.workers,
                     .servers = prediction.scenario.server_count(),
                     .examples_per_second = ExpectedExamplesPerSecond(prediction),
                     .confidence_interval = prediction.confidence_interval,
                     .deviation = DeviationOf(prediction.simulation_interval)});
  }
  return curve;
}

}  // namespace stepcast
