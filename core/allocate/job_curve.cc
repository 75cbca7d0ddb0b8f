#include "core/allocate/job_curve.h"

#include <cstddef>
#include <vector>

#include "core/predict/distinct_warnings.h"

namespace stepcast {

int64_t PointsOf(const AllocationJob& job) {
  return static_cast<int64_t>(CountsToSimulate(job.worker_counts).size() *
                              job.server_choices.size()) +
         1;
}

absl::StatusOr<JobCurve> SimulateCurve(const AllocationJob& job, const SimulationOptions& options,
                                       StopCheck stop, const Executor& executor) {
  ThroughputQuery query{.scenarios = {job.one_worker}, .options = options};
  for (const Scenario& choice : job.server_choices) {
    for (const int32_t workers : CountsToSimulate(job.worker_counts)) {
      query.scenarios.push_back(choice);
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
    curve.curve.Add({.workers = prediction.scenario.workers,
                     .servers = prediction.scenario.servers().servers,
                     .examples_per_second = ExpectedExamplesPerSecond(prediction),
                     .confidence_interval = prediction.confidence_interval});
  }
  return curve;
}

}  // namespace stepcast
