#include "core/predict/settled_choice.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/distributions.h"
#include "core/base/random.h"

namespace stepcast {

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
    for (const Alternative& each : alternatives)
      drawn.push_back(each.value + each.deviation * random.Normal());
    ++wins[static_cast<size_t>(std::max_element(drawn.begin(), drawn.end()) - drawn.begin())];
  }
  std::vector<double> probabilities;
  for (const int count : wins) probabilities.push_back(static_cast<double>(count) / kDraws);
  return probabilities;
}

}  // namespace stepcast
