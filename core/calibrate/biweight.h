// Tukey's biweight: the weight of a residual u, in units of its reach, that gives gross outliers
// none.
//
// Threads: pure functions.
#pragma once

#include <cmath>

namespace stepcast {

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
