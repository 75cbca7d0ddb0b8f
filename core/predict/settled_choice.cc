#include "core/predict/settled_choice.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/normal_distribution.h"
#include "core/base/random.h"
#include "core/base/student_t.h"

namespace stepcast {

namespace {

// Fewer pairs say too little of how much they differ.
constexpr size_t kLeastPairs = 3;
constexpr int kDraws = 2000;
// The level at which a normal error is made as wide as Student's.
constexpr double kLevel = 0.95;

double DeviationOfDifference(const Alternative& a, const Alternative& b) {
  const size_t pairs = std::min(a.runs.size(), b.runs.size());
  if (pairs < kLeastPairs) return std::hypot(a.deviation, b.deviation);
  std::vector<double> differences;
  for (size_t i = 0; i < pairs; ++i) differences.push_back(a.runs[i] - b.runs[i]);
  return StudentT(differences, kLevel).half_width / NormalQuantile(0.5 + kLevel / 2);
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

Settled HowSettled(const std::vector<Alternative>& alternatives, size_t chosen) {
  const Alternative& best = alternatives[chosen];
  Settled settled;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    if (i == chosen) continue;
    const double ahead = best.value - alternatives[i].value;
    const double deviation = DeviationOfDifference(best, alternatives[i]);
    if (deviation <= 0) {
      if (ahead < 0) settled.probability_best = 0;
      settled.expected_loss += std::max(0.0, -ahead);
      continue;
    }
    const double z = ahead / deviation;
    settled.probability_best *= NormalCdf(z);
    settled.expected_loss += deviation * (NormalDensity(z) - z * NormalCdf(-z));
  }
  settled.expected_loss /= std::max(std::abs(best.value), 1e-300);
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
