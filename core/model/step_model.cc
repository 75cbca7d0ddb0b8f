#include "core/model/step_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/base/index.h"

namespace stepcast {

namespace {

// Nanoseconds that the steps of a recorded worker compute, by step.
std::vector<double> ComputedNs(const Profile& profile, int32_t worker, StepPart part) {
  const Resource resource =
      part == StepPart::kWorkers ? Resource::kWorker : Resource::kParameterServer;
  std::vector<double> computed;
  for (const RecordedStep& step : profile.steps_of(worker)) {
    double& sum = computed.emplace_back(0);
    for (size_t op = 0; op < profile.operations().size(); ++op) {
      if (profile.operations()[op].resource == resource)
        sum += static_cast<double>(step.end_ns[op] - step.start_ns[op]);
    }
  }
  return computed;
}

double MeanOfAll(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

// Squared distances from the mean.
double SquaresOf(const std::vector<double>& values) {
  const double mean = MeanOfAll(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return squares;
}

// The share of the variance between steps that all workers have in common: a mean over n workers
// varies by what is common and an n-th of the rest.
double CommonShare(const std::vector<std::vector<double>>& logarithms, double variance) {
  const auto workers = static_cast<double>(logarithms.size());
  const size_t steps = logarithms.front().size();
  if (workers < 2 || steps < 3 || variance <= 0) return 0;
  std::vector<double> means(steps, 0);
  for (const std::vector<double>& worker : logarithms) {
    for (size_t step = 0; step < steps; ++step) means[step] += worker[step] / workers;
  }
  const double of_means = SquaresOf(means) / static_cast<double>(steps - 1);
  return std::clamp((of_means - variance / workers) / (variance * (1 - 1 / workers)), 0.0, 1.0);
}

}  // namespace

double StepModel::deviation() const { return std::hypot(own_deviation, common_deviation); }

double StepModel::MeanError(int32_t of_steps) const {
  return std::hypot(mean.of_first * deviation() / std::sqrt(static_cast<double>(of_steps)),
                    mean.error_of_second);
}

StepModel StepModelOf(const Profile& profile, StepPart part) {
  StepModel model{.degrees = StepModel::kPriorSteps,
                  .steps = static_cast<int32_t>(profile.steps().size())};
  if (part == StepPart::kWorkers && profile.change() != nullptr)
    model.mean = profile.change()->mean;
  double squares = 0;
  bool computes = false;
  for (int32_t worker = 0; worker < profile.recorded_workers(); ++worker) {
    std::vector<double> logarithms = ComputedNs(profile, worker, part);
    const double mean = MeanOfAll(logarithms);
    computes = computes || mean > 0;
    for (double& value : logarithms) value = value > 0 ? std::log(value / mean) : 0;
    squares += SquaresOf(logarithms);
    model.logarithms.push_back(std::move(logarithms));
  }
  if (!computes) return model;
  const int32_t observed = profile.recorded_workers() * (model.steps - 1);
  model.degrees += observed;
  const double variance =
      (squares + StepModel::kPriorSteps * StepModel::kPriorDeviation * StepModel::kPriorDeviation) /
      model.degrees;
  const double common =
      observed > 0 ? CommonShare(model.logarithms, squares / observed) * variance : 0;
  model.own_deviation = std::sqrt(variance - common);
  model.common_deviation = std::sqrt(common);
  return model;
}

}  // namespace stepcast
