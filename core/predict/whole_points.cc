#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "core/predict/pipeline_job.h"
#include "core/predict/point_set.h"

namespace stepcast {

std::vector<Scenario> LoneWorkersOf(const Scenario& scenario) {
  Scenario alone = scenario;
  alone.workers = 1;
  alone.start_offsets_ns.clear();
  if (scenario.worker_groups.empty()) return {alone};
  const auto speeds = [&](const WorkerGroup& group) {
    return std::pair(
        group.compute_speed_factor.value_or(1),
        group.bandwidth_bytes_per_second.value_or(scenario.bandwidth_bytes_per_second));
  };
  std::vector<WorkerGroup> groups = scenario.worker_groups;
  std::ranges::stable_sort(groups, std::ranges::greater(), speeds);
  std::vector<Scenario> lone;
  double bandwidth = 0;  // the most of those that are as fast
  for (WorkerGroup& group : groups) {
    if (speeds(group).second <= bandwidth) continue;
    bandwidth = speeds(group).second;
    group.count = 1;
    alone.worker_groups = {group};
    lone.push_back(alone);
  }
  return lone;
}

size_t WholePoints::FindOrAppend(const Scenario& scenario) {
  const auto found = std::find_if(points_.begin(), points_.end(),
                                  [&](const Point& point) { return point.scenario == scenario; });
  if (found != points_.end()) return static_cast<size_t>(found - points_.begin());
  points_.push_back({.scenario = scenario, .prediction = {}});
  return points_.size() - 1;
}

absl::Status WholePoints::RunAll(StopCheck stop, const Executor& executor) {
  for (size_t i = 0; i < points_.size(); ++i) {
    if (absl::Status status = Run(i, stop, executor); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status WholePoints::Run(size_t index, StopCheck stop, const Executor& executor) {
  Point& point = points_[index];
  if (point.prediction.has_value()) return absl::OkStatus();
  absl::StatusOr<Prediction> made = point.scenario.pipeline.has_value()
                                        ? PredictPipeline(point.scenario, stop, executor)
                                        : PredictShare(point.scenario, stop, executor);
  if (!made.ok()) return made.status();
  point.prediction = *std::move(made);
  return absl::OkStatus();
}

absl::StatusOr<Prediction> WholePoints::PredictPipeline(const Scenario& scenario, StopCheck stop,
                                                        const Executor& executor) {
  if (planned_ != scenario.pipeline) plan_ = PlanPipeline(profile_, scenario);
  planned_ = scenario.pipeline;
  if (!predictor_.has_value()) predictor_.emplace(profile_, options_);
  absl::StatusOr<PipelinePredictor::Answer> made =
      predictor_->Predict(scenario, *plan_, stop, executor, known_);
  if (!made.ok()) return made.status();
  statistics_.Add({.simulated_operations = made->events, .engine_path = "pipeline", .runs = 1});
  if (shared_ == nullptr) return std::move(made->prediction);
  const absl::Status status = CompareWithOne(scenario, stop, executor, made->prediction);
  return status.ok() ? absl::StatusOr<Prediction>(std::move(made->prediction)) : status;
}

absl::StatusOr<Prediction> WholePoints::PredictShare(const Scenario& scenario, StopCheck stop,
                                                     const Executor& executor) {
  const absl::StatusOr<Profile> profile = shared_->ProfileOf(scenario.workers);
  if (!profile.ok()) return profile.status();
  Scenario of_share = scenario;
  of_share.change = profile->change();
  PointSet points(*profile, options_);
  const absl::StatusOr<size_t> index = points.AddAlone(of_share, stop);
  if (!index.ok()) return index.status();
  if (absl::Status status = points.RunAll(stop, executor); !status.ok()) return status;
  if (absl::Status status = points.FindBottlenecks({*index}, stop, executor); !status.ok())
    return status;
  const SimulationStatistics made = points.Statistics();
  if (known_.counter != nullptr) known_.counter->Add(made.simulated_operations);
  statistics_.Add(made);
  Prediction prediction = points.Summarize(*index);
  const absl::Status status = CompareWithOne(scenario, stop, executor, prediction);
  return status.ok() ? absl::StatusOr<Prediction>(std::move(prediction)) : status;
}

absl::Status WholePoints::CompareWithOne(const Scenario& scenario, StopCheck stop,
                                         const Executor& executor, Prediction& prediction) {
  double most = 0;  // examples per second of one worker
  for (Scenario& alone : LoneWorkersOf(scenario)) {
    if (alone.pipeline.has_value()) alone.pipeline->layout.micro_batches *= scenario.workers;
    if (alone == scenario) {
      most = prediction.examples_per_second;
      break;
    }
    const size_t one = FindOrAppend(alone);
    if (absl::Status status = Run(one, stop, executor); !status.ok()) return status;
    most = std::max(most, points_[one].prediction->examples_per_second);
  }
  prediction.speedup = prediction.examples_per_second / most;
  prediction.scaling_efficiency = prediction.speedup / scenario.workers;
  return absl::OkStatus();
}

}  // namespace stepcast
