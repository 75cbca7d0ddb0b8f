// Statistics that gross outliers do not move: medians, and Tukey's biweight.
//
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace stepcast {

// Medians: of values, and of values that do not all count the same. Cost: linear, and O(n log n)
// with weights.

// The value below which a share of the values lies: the least one with at least so many at or below
// it; of two in the middle the lower one. REQUIRES: !values.empty(), 0 < share <= 1.
inline double Quantile(std::vector<double> values, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max<size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

inline double Median(std::vector<double> values) { return Quantile(std::move(values), 0.5); }

struct WeightedValue {
  double value = 0;
  double weight = 0;
};

// The least value that, with those below it, has half of the weight. REQUIRES: !values.empty(), no
// weight below 0.
inline double WeightedMedian(std::vector<WeightedValue> values) {
  std::sort(values.begin(), values.end(),
            [](const WeightedValue& a, const WeightedValue& b) { return a.value < b.value; });
  double half = 0;
  for (const WeightedValue& value : values) half += value.weight / 2;
  double below = 0;
  for (const WeightedValue& value : values) {
    below += value.weight;
    if (below >= half) return value.value;
  }
  return values.back().value;
}

// Tukey's biweight: the weight of a residual u, in units of its reach, that gives gross outliers
// none.

// Standard deviations within which a residual has weight: 95 % of least squares' precision where
// the noise is normal.
inline constexpr double kBiweightReach = 4.685;
// A standard deviation over the median distance, where the noise is normal.
inline constexpr double kDeviationPerMedian = 1.4826;

inline double Biweight(double u) { return std::abs(u) < 1 ? (1 - u * u) * (1 - u * u) : 0; }
// The derivative of u * Biweight(u).
inline double BiweightSlope(double u) {
  return std::abs(u) < 1 ? (1 - u * u) * (1 - 5 * u * u) : 0;
}
// The loss of which u * Biweight(u) is the derivative, but for a factor; 1 at most.
inline double BiweightLoss(double u) {
  const double rest = std::abs(u) < 1 ? 1 - u * u : 0;
  return 1 - rest * rest * rest;
}

}  // namespace stepcast
