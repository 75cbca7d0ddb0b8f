#include "core/predict/whole_points.h"

#include <algorithm>

#include "core/predict/pipeline_job.h"

namespace stepcast {

Scenario OneWorkerOf(Scenario scenario) {
  scenario.workers = 1;
  scenario.start_offsets_ns.clear();
  if (!scenario.worker_groups.empty()) {
    scenario.worker_groups.resize(1);
    scenario.worker_groups.front().count = 1;
  }
  return scenario;
}

size_t WholePoints::FindOrAppend(const Scenario& scenario) {
  const auto found = std::find_if(points_.begin(), points_.end(),
                                  [&](const Point& point) { return point.scenario == scenario; });
  if (found != points_.end()) return static_cast<size_t>(found - points_.begin());
  points_.push_back({.scenario = scenario, .prediction = {}});
  return points_.size() - 1;
}

absl::Status WholePoints::RunAll(StopCheck stop, const Executor& executor) {
  for (Point& point : points_) {
    if (point.prediction.has_value()) continue;
    absl::StatusOr<Prediction> made = point.scenario.pipeline.has_value()
                                          ? PredictPipeline(point.scenario, stop, executor)
                                          : PredictShare(point.scenario, stop, executor);
    if (!made.ok()) return made.status();
    point.prediction = *std::move(made);
  }
  return absl::OkStatus();
}

absl::StatusOr<Prediction> WholePoints::PredictPipeline(const Scenario& scenario, StopCheck stop,
                                                        const Executor& executor) {
  if (planned_ != scenario.pipeline) plan_ = PlanPipeline(profile_, scenario);
  planned_ = scenario.pipeline;
  if (!predictor_.has_value()) predictor_.emplace(profile_, options_);
  absl::StatusOr<PipelinePredictor::Answer> made =
      predictor_->Predict(scenario, *plan_, stop, executor);
  if (!made.ok()) return made.status();
  if (known_.counter != nullptr) known_.counter->Add(made->events);
  statistics_.Add({.simulated_operations = made->events, .engine_path = "pipeline", .runs = 1});
  return std::move(made->prediction);
}

absl::StatusOr<Prediction> WholePoints::PredictShare(const Scenario& scenario, StopCheck stop,
                                                     const Executor& executor) {
  const absl::StatusOr<Profile> profile = shared_->ProfileOf(scenario.workers);
  if (!profile.ok()) return profile.status();
  ThroughputQuery query{.scenarios = {scenario}, .options = options_, .plan = {}, .shared = {}};
  query.scenarios.front().change = profile->change();
  absl::StatusOr<ThroughputAnswer> made = PredictThroughput(*profile, query, stop, executor);
  if (!made.ok()) return made.status();
  if (known_.counter != nullptr) known_.counter->Add(made->simulation.simulated_operations);
  statistics_.Add(made->simulation);
  Prediction& prediction = made->predictions.front();
  if (scenario.workers == 1) {
    paces_of_one_.emplace_back(scenario, prediction.examples_per_second);
  }
  const absl::StatusOr<double> one = PaceOfOne(scenario, stop, executor);
  if (!one.ok()) return one.status();
  prediction.speedup = prediction.examples_per_second / *one;
  prediction.scaling_efficiency = prediction.speedup / scenario.workers;
  return std::move(prediction);
}

absl::StatusOr<double> WholePoints::PaceOfOne(const Scenario& scenario, StopCheck stop,
                                              const Executor& executor) {
  const Scenario alone = OneWorkerOf(scenario);
  const auto known = std::find_if(paces_of_one_.begin(), paces_of_one_.end(),
                                  [&](const auto& pace) { return pace.first == alone; });
  if (known != paces_of_one_.end()) return known->second;
  const absl::StatusOr<Prediction> made = PredictShare(alone, stop, executor);
  if (!made.ok()) return made.status();
  return made->examples_per_second;
}

}  // namespace stepcast
