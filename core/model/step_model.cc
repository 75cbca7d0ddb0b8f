#include "core/model/step_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/distributions.h"
#include "core/base/index.h"
#include "core/base/message_text.h"

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

namespace {

// The least share of computation whose names two recordings of a job have in common.
constexpr double kLeastShared = 0.5;

// By operation, a value of each.
using ByOperation = std::vector<double>;

double LengthOf(const RecordedStep& step, size_t operation) {
  return static_cast<double>(step.end_ns[operation] - step.start_ns[operation]);
}

ByOperation MeanNs(const Profile& profile) {
  ByOperation mean(profile.operations().size());
  for (const RecordedStep& step : profile.steps()) {
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += LengthOf(step, i);
  }
  for (double& ns : mean) ns /= static_cast<double>(profile.steps().size());
  return mean;
}

// The workers' computation of each step.
std::vector<double> ComputationNs(const Profile& profile) {
  std::vector<double> sums;
  for (const RecordedStep& step : profile.steps()) {
    double sum = 0;
    for (size_t i = 0; i < profile.operations().size(); ++i) {
      if (profile.operations()[i].resource == Resource::kWorker) sum += LengthOf(step, i);
    }
    sums.push_back(sum);
  }
  return sums;
}

// Instants of a step as they come where computation takes another time: while an operation of the
// worker runs, time passes by its factor (of several at once by their mean), else as recorded.
class WarpedClock {
 public:
  WarpedClock(const Profile& profile, const RecordedStep& step, const ByOperation& factors) {
    struct Edge {
      int64_t at_ns;
      double factor;  // above 0: a begin, else an end
    };
    std::vector<Edge> edges;
    for (size_t i = 0; i < factors.size(); ++i) {
      if (profile.operations()[i].resource != Resource::kWorker || LengthOf(step, i) == 0) continue;
      edges.push_back({step.start_ns[i], factors[i]});
      edges.push_back({step.end_ns[i], -factors[i]});
    }
    std::sort(edges.begin(), edges.end(),
              [](const Edge& a, const Edge& b) { return a.at_ns < b.at_ns; });
    double sum = 0;
    int running = 0;
    double warped = 0;
    int64_t before = 0;
    for (const Edge& edge : edges) {
      const double rate = running > 0 ? sum / running : 1;
      warped += rate * static_cast<double>(edge.at_ns - before);
      before = edge.at_ns;
      recorded_.push_back(edge.at_ns);
      warped_.push_back(warped);
      running += std::signbit(edge.factor) ? -1 : 1;
      sum = running > 0 ? sum + edge.factor : 0;
    }
  }

  double At(int64_t ns) const {
    const auto after = std::upper_bound(recorded_.begin(), recorded_.end(), ns);
    const auto next = static_cast<size_t>(after - recorded_.begin());
    if (next == 0) return static_cast<double>(ns);
    const double since = static_cast<double>(ns - recorded_[next - 1]);
    if (next == recorded_.size()) return warped_.back() + since;
    const auto gap = static_cast<double>(recorded_[next] - recorded_[next - 1]);
    return warped_[next - 1] + (warped_[next] - warped_[next - 1]) * since / gap;
  }

 private:
  std::vector<int64_t> recorded_;  // ascending
  std::vector<double> warped_;     // parallel
};

// Mean times of the second recording, by operation of the first; below 0: it has none of its name,
// or it is not a computation of a worker.
ByOperation OtherNs(const Profile& profile, const Profile& second) {
  absl::flat_hash_map<std::string_view, size_t> places;
  for (size_t i = 0; i < second.operations().size(); ++i) {
    if (second.operations()[i].resource == Resource::kWorker)
      places.emplace(second.operations()[i].name, i);
  }
  const ByOperation mean = MeanNs(second);
  ByOperation other(profile.operations().size(), -1);
  for (size_t i = 0; i < other.size(); ++i) {
    if (profile.operations()[i].resource != Resource::kWorker) continue;
    const auto found = places.find(profile.operations()[i].name);
    if (found != places.end()) other[i] = mean[found->second];
  }
  return other;
}

// The part of a recording's computation that has names of another one.
struct CommonNames {
  double share = 0;
  std::string longest_other;  // the longest computation whose name the other has not
};

CommonNames CommonWith(const Profile& other, const Profile& profile) {
  const ByOperation found = OtherNs(profile, other);
  const ByOperation mean = MeanNs(profile);
  CommonNames shared;
  double all = 0;
  double common = 0;
  double longest = -1;
  for (size_t i = 0; i < mean.size(); ++i) {
    if (profile.operations()[i].resource != Resource::kWorker) continue;
    all += mean[i];
    if (found[i] >= 0) {
      common += mean[i];
    } else if (mean[i] > longest) {
      longest = mean[i];
      shared.longest_other = profile.operations()[i].name;
    }
  }
  shared.share = all > 0 ? common / all : 0;
  return shared;
}

// ` ("resnet50")`, where it has a name.
std::string NameOf(const Profile& profile) {
  const std::string& name =
      profile.display_name().empty() ? profile.model() : profile.display_name();
  return name.empty() ? "" : absl::StrCat(" (", Quoted(name), ")");
}

// The relative error of a recording's mean, the prior's steps counted, at that probability.
double ErrorOfMean(const StepModel& model, double level) {
  return StudentTQuantile(std::max(model.degrees, 3), level) * model.MeanError(model.steps);
}

std::string ToldOf(const Profile& profile, const Profile& second, double batch_size, double ratio,
                   double factor) {
  const MeanInterval own = StudentT(ComputationNs(profile), 0.95);
  const MeanInterval other = StudentT(ComputationNs(second), 0.95);
  // The error of 1 + ratio (other / own - 1).
  const double error = std::abs(ratio) * (other.mean / own.mean) *
                       std::hypot(ErrorOfMean(StepModelOf(profile, StepPart::kWorkers), 0.95),
                                  ErrorOfMean(StepModelOf(second, StepPart::kWorkers), 0.95));
  const double recorded = profile.batch_size();
  const double growing = (other.mean / own.mean - 1) * recorded /
                         (static_cast<double>(second.batch_size()) - recorded);
  std::string told = absl::StrFormat(
      "Computation with %.10g examples is drawn from recordings with %d and %d: %.3g times the "
      "first's (95 %%: %.3g to %.3g), %.0f %% of which does not grow with the batch.",
      batch_size, profile.batch_size(), second.batch_size(), factor, std::max(0.0, factor - error),
      factor + error, 100 * std::clamp(1 - growing, 0.0, 1.0));
  if (growing < 0) {
    absl::StrAppendFormat(&told,
                          " The one with %d is the faster, which a larger batch is not: are both "
                          "of the same device and job?",
                          std::max(profile.batch_size(), second.batch_size()));
  }
  return told;
}

}  // namespace

void CheckSecondRecording(const Profile& profile, const Profile& second, const char* path,
                          FaultList& faults) {
  faults.AddIf(second.batch_size() == profile.batch_size(), path, "its batch is ",
               second.batch_size(),
               " as well: what grows with the batch shows in another one only");
  const CommonNames of_first = CommonWith(second, profile);
  const CommonNames of_second = CommonWith(profile, second);
  if (std::min(of_first.share, of_second.share) >= kLeastShared) return;
  const bool first_differs = of_first.share < of_second.share;
  faults.Add(
      path,
      absl::StrFormat(
          "of another job: %.3g %% of the first's computation%s and %.3g %% of its own%s have "
          "names that the other has, too; %s is of the %s alone",
          100 * of_first.share, NameOf(profile), 100 * of_second.share, NameOf(second),
          Quoted(first_differs ? of_first.longest_other : of_second.longest_other),
          first_differs ? "first" : "second"));
}

BatchGrowth GrowthByTwoRecordings(const Profile& profile, const Profile& second,
                                  double batch_size) {
  const double ratio =
      (batch_size - profile.batch_size()) / (second.batch_size() - profile.batch_size());
  const ByOperation own = MeanNs(profile);
  const ByOperation other = OtherNs(profile, second);
  BatchGrowth growth{.factors = ByOperation(own.size(), 1), .told = {}};
  double own_sum = 0;
  double grown_sum = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    if (other[i] < 0 || own[i] == 0) continue;
    growth.factors[i] = std::max(0.0, 1 + ratio * (other[i] / own[i] - 1));
    own_sum += own[i];
    grown_sum += own[i] * growth.factors[i];
  }
  if (own_sum > 0) growth.all = grown_sum / own_sum;
  for (size_t i = 0; i < own.size(); ++i) {
    const bool is_computed = profile.operations()[i].resource == Resource::kWorker;
    if (is_computed && (other[i] < 0 || own[i] == 0)) growth.factors[i] = growth.all;
  }
  // By own + ratio (other - own), of the computations of both.
  if (growth.all > 0) {
    const StepModel of_second = StepModelOf(second, StepPart::kWorkers);
    growth.mean = {.of_first = std::abs(1 - ratio) / growth.all,
                   .error_of_second = std::abs(growth.all - 1 + ratio) / growth.all *
                                      of_second.MeanError(of_second.steps)};
  }
  growth.told = ToldOf(profile, second, batch_size, ratio, growth.all);
  return growth;
}

RecordedStep WarpedStep(const Profile& profile, const RecordedStep& step,
                        const std::vector<double>& factors) {
  const WarpedClock clock(profile, step, factors);
  RecordedStep warped = step;
  for (size_t i = 0; i < factors.size(); ++i) {
    const bool is_computed = profile.operations()[i].resource == Resource::kWorker;
    const double ns = LengthOf(step, i) * (is_computed ? factors[i] : 1);
    warped.start_ns[i] = std::llround(clock.At(step.start_ns[i]));
    warped.end_ns[i] = warped.start_ns[i] + std::llround(ns);
  }
  return warped;
}

}  // namespace stepcast
