#include "core/predict/certainty.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/base/distributions.h"
#include "core/base/random.h"

namespace stepcast {

namespace {

constexpr double kGroupsThatMatter = 0.05;
constexpr double kSpreadsApart = 8;
constexpr size_t kMinRunsToSplit = 4;

struct Sample {
  double mean = 0;
  double squares = 0;  // of the distances from the mean
  double count = 0;
};

Sample SampleOf(const std::vector<double>& values, size_t from, size_t to) {
  Sample sample{.count = static_cast<double>(to - from)};
  for (size_t i = from; i < to; ++i) sample.mean += values[i] / sample.count;
  for (size_t i = from; i < to; ++i)
    sample.squares += (values[i] - sample.mean) * (values[i] - sample.mean);
  return sample;
}

}  // namespace

double SplitInTwo(std::vector<double> values) {
  constexpr double kOneGroup = std::numeric_limits<double>::infinity();
  if (values.size() < kMinRunsToSplit) return kOneGroup;
  std::sort(values.begin(), values.end());
  size_t best = 1;
  double least = kOneGroup;
  for (size_t split = 1; split < values.size(); ++split) {
    const double squares =
        SampleOf(values, 0, split).squares + SampleOf(values, split, values.size()).squares;
    if (squares >= least) continue;
    least = squares;
    best = split;
  }
  const double apart = SampleOf(values, best, values.size()).mean - SampleOf(values, 0, best).mean;
  const double spread = std::sqrt(least / static_cast<double>(values.size() - 2));
  const bool two = apart > kGroupsThatMatter * SampleOf(values, 0, values.size()).mean &&
                   apart > kSpreadsApart * spread;
  return two ? values[best] : kOneGroup;
}

Interval SingleRunInterval(const std::vector<RunEstimate>& runs, double level) {
  std::vector<double> values;
  double errors = 0;
  for (const RunEstimate& run : runs) {
    values.push_back(run.steps_per_second);
    errors += run.standard_error * run.standard_error;
  }
  std::sort(values.begin(), values.end());
  const double split = SplitInTwo(values);
  const auto at =
      static_cast<size_t>(std::lower_bound(values.begin(), values.end(), split) - values.begin());
  const bool two = at < values.size();
  const Sample lower = SampleOf(values, 0, at);
  const Sample upper = two ? SampleOf(values, at, values.size()) : lower;
  const int degrees = static_cast<int>(runs.size()) - (two ? 2 : 1);
  const double spread =
      degrees > 0 ? std::sqrt((lower.squares + (two ? upper.squares : 0)) / degrees) : 0;
  const double by_spread = degrees > 0 ? StudentTQuantile(degrees, level) * spread : 0;
  const auto count = static_cast<double>(runs.size());
  const double by_batches =
      StudentTQuantile(static_cast<int>(runs.size()) * (kBatches - 1), level) *
      std::sqrt(errors / count);
  const double half_width = std::max(by_spread, by_batches);
  // The mean of the runs is off, too, by their spread over the root of their number.
  return {.lower = std::max(0.0, lower.mean - half_width * std::sqrt(1 + 1 / lower.count)),
          .upper = upper.mean + half_width * std::sqrt(1 + 1 / upper.count),
          .level = level};
}

namespace {

struct MeasuredError {
  std::string_view kind;
  double fraction;
  const char* source;
};

constexpr int32_t kMinDegrees = 3;

constexpr MeasuredError kMeasuredErrors[] = {
#include "core/predict/model_errors.inc"
};

// The row of that name, which must be there for this to compile.
consteval size_t RowOf(std::string_view kind) {
  size_t row = 0;
  while (kMeasuredErrors[row].kind != kind) ++row;
  return row;
}
constexpr size_t kRowByJobKind[] = {RowOf("parameter servers"), RowOf("all-reduce"),
                                    RowOf("pipelines")};
constexpr size_t kRecordedStages = RowOf("recorded stages");

// Half-width of the interval of the logarithm of throughput. More steps tell a deviation better,
// not what a leap depends on.
double HalfWidthOf(const StepModel& model, const Sensitivity& sensitivity, int32_t more_steps,
                   double level) {
  const auto workers = static_cast<int32_t>(model.logarithms.size());
  // One recorded step or two leave the deviation to the prior, which is not as unsure as one step.
  const int32_t degrees = std::max(kMinDegrees, model.degrees + workers * more_steps);
  const double of_mean = sensitivity.to_mean * model.MeanError(model.steps + more_steps);
  // The logarithm of a standard deviation has that error, to first order.
  const double of_deviation = sensitivity.to_deviation / std::sqrt(2.0 * degrees);
  return std::hypot(StudentTQuantile(degrees, level) * std::hypot(of_mean, of_deviation),
                    sensitivity.leap);
}

// The normal deviate that a central interval of that probability reaches to.
double NormalDeviate(double level) { return NormalQuantile(0.5 + level / 2); }

}  // namespace

InputError InputErrorOf(const Profile& profile, const StepModel& model,
                        const Sensitivity& sensitivity, double level) {
  // No more steps can be recorded of a job that nobody ran.
  const int32_t more = profile.is_made() ? 0 : kMoreSteps;
  return {.half_width = HalfWidthOf(model, sensitivity, 0, level),
          .with_more_steps = HalfWidthOf(model, sensitivity, more, level)};
}

ModelError MeasuredModelError(const Scenario& scenario, int32_t recorded_ranks) {
  const MeasuredError& measured =
      kMeasuredErrors[recorded_ranks > 0 ? kRecordedStages
                                         : kRowByJobKind[static_cast<size_t>(scenario.kind())]];
  ModelError error{.fraction = measured.fraction, .source = measured.source};
  if (scenario.sums())
    error.source = absl::StrCat("none of servers that sum is measured; of others: ", error.source);
  if (recorded_ranks > 0 && scenario.pipeline->layout.stages() != recorded_ranks)
    error.source = absl::StrCat(
        "none of stages of several recorded ranks is measured; of stages "
        "that are ranks: ",
        error.source);
  return error;
}

void WarnOfPrecision(const SimulationOptions& options, const MeanInterval& mean, int32_t runs,
                     Prediction& prediction) {
  const double asked = options.relative_precision;
  if (asked <= 0 || runs < 2 || mean.half_width <= asked * mean.mean) return;
  prediction.warnings.push_back(
      {.reason = Warning::Reason::kPrecisionNotReached,
       .message = absl::StrFormat(
           "the precision asked for, %g, is not reached: %d runs leave the mean open by %.3g of it "
           "to either side; allow more replications, or longer ones by steps_per_worker",
           asked, runs, mean.half_width / mean.mean)});
}

void TellCertainty(const Uncertainty& uncertainty, const Interval& runs, Prediction& prediction) {
  const double mean = prediction.examples_per_second;
  const double level = runs.level;
  // All on the logarithm, so that each holds the one before.
  const auto around = [&](double below, double above) {
    return Interval{
        .lower = mean * std::exp(-below), .upper = mean * std::exp(above), .level = level};
  };
  prediction.simulation_interval = around(uncertainty.simulation, uncertainty.simulation);
  const double half = std::hypot(uncertainty.simulation, uncertainty.input.half_width);
  prediction.confidence_interval = around(half, half);
  const double with_more = std::hypot(uncertainty.simulation, uncertainty.input.with_more_steps);
  prediction.input_fraction = half > 0 ? 1 - uncertainty.simulation / half : 0;
  prediction.half_width_with_more_steps = std::sinh(with_more) * mean;
  // A mean absolute error of a normal distribution is sqrt(2 / pi) of its deviation.
  const double model = NormalDeviate(level) * uncertainty.model.fraction * std::sqrt(M_PI / 2);
  const double other = std::hypot(uncertainty.input.half_width, model);
  // A single run is no better known than the mean of all.
  const auto reach = [&](double chance) {
    return std::hypot(std::max(chance, uncertainty.simulation), other);
  };
  prediction.run_interval = around(reach(std::log(mean / std::max(runs.lower, mean * 1e-6))),
                                   reach(std::log(runs.upper / mean)));
  prediction.model_error = uncertainty.model;
}

namespace {

// Fewer pairs say too little of how much they differ.
constexpr size_t kLeastPairs = 3;
constexpr int kDraws = 2000;
// The level at which a normal error is made as wide as Student's.
constexpr double kLevel = 0.95;
// A larger expected loss, as a share, says no more.
constexpr double kMostLoss = 1e9;

// True if they are one alternative: the same choices gave the same runs.
bool AreOne(const Alternative& a, const Alternative& b) {
  return !a.runs.empty() && a.value == b.value && a.runs == b.runs;
}

// The lead of an alternative over another, and its deviation.
struct Lead {
  double mean = 0;
  double deviation = 0;
};

Lead LeadOf(const Alternative& a, const Alternative& b) {
  const size_t pairs = std::min(a.runs.size(), b.runs.size());
  if (pairs < kLeastPairs)
    return {.mean = a.value - b.value, .deviation = std::hypot(a.deviation, b.deviation)};
  std::vector<double> differences;
  for (size_t i = 0; i < pairs; ++i) differences.push_back(a.runs[i] - b.runs[i]);
  const MeanInterval lead = StudentT(differences, kLevel);
  return {.mean = lead.mean, .deviation = lead.half_width / NormalQuantile(0.5 + kLevel / 2)};
}

}  // namespace

double DeviationOf(const Interval& interval) {
  if (interval.upper <= interval.lower) return 0;
  return (interval.upper - interval.lower) / 2 / NormalQuantile(0.5 + interval.level / 2);
}

Alternative AlternativeOf(const Prediction& prediction, std::vector<double> runs) {
  const double steps_per_example = prediction.steps_per_second / prediction.examples_per_second;
  return {.value = prediction.steps_per_second,
          .deviation = DeviationOf(prediction.simulation_interval) * steps_per_example,
          .runs = std::move(runs)};
}

Settled HowSettled(const std::vector<Alternative>& alternatives, size_t chosen,
                   double no_difference) {
  const Alternative& best = alternatives[chosen];
  const double as_good = no_difference * std::abs(best.value);
  Settled settled;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    const auto is_known = [&](const Alternative& other) { return AreOne(other, alternatives[i]); };
    const auto rival = alternatives.begin() + static_cast<std::ptrdiff_t>(i);
    if (i == chosen || is_known(best) || std::any_of(alternatives.begin(), rival, is_known))
      continue;
    const double other = alternatives[i].value;
    const auto [ahead, deviation] = LeadOf(best, alternatives[i]);
    const double z = ahead / deviation;
    // Without a deviation, an end, or a number nothing is left to chance.
    if (!std::isfinite(ahead) || !std::isfinite(z)) {
      if (other > best.value + as_good || std::isnan(best.value)) settled.probability_best = 0;
      if (std::isfinite(ahead)) settled.expected_loss += std::max(0.0, -ahead);
      continue;
    }
    settled.probability_best *= NormalCdf((ahead + as_good) / deviation);
    settled.expected_loss += deviation * (NormalDensity(z) - z * NormalCdf(-z));
  }
  if (settled.expected_loss > 0) {
    settled.expected_loss =
        std::min(settled.expected_loss / std::max(std::abs(best.value), 1e-300), kMostLoss);
  }
  return settled;
}

std::vector<double> ProbabilitiesOfBest(const std::vector<Alternative>& alternatives,
                                        uint64_t seed) {
  Random random({seed, 0x1a70});
  std::vector<int> wins(alternatives.size());
  for (int draw = 0; draw < kDraws && !alternatives.empty(); ++draw) {
    std::vector<double> drawn;
    drawn.reserve(alternatives.size());
    for (const Alternative& each : alternatives)
      drawn.push_back(each.value + each.deviation * random.Normal());
    ++wins[static_cast<size_t>(std::max_element(drawn.begin(), drawn.end()) - drawn.begin())];
  }
  std::vector<double> probabilities;
  probabilities.reserve(wins.size());
  for (const int count : wins) probabilities.push_back(static_cast<double>(count) / kDraws);
  return probabilities;
}

}  // namespace stepcast
