// A straight line through measurements of which some may be far off: y = slope * x + offset.
//
// From Theil and Sen's line (theil_sen.h), iterated weighted least squares with Tukey's biweight (c
// = 4.685: 95 % of least squares' precision where the noise is normal), which gives gross outliers
// no weight at all. The noise may grow with the line (noise_scale.h). Intervals are Student's t
// with Huber's sandwich covariance (1967), or with the spread around the line where that is wider.
// Fewer than kFewestForOutliers measurements cannot tell an outlier from another: plain least
// squares. Threads: pure functions. Cost: O(n log n), up to 100 passes, and up to 250,000 pairs for
// the start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stepcast {

struct Measurement {
  double x = 0;
  double y = 0;
};

struct Line {
  double slope = 0;
  double offset = 0;

  double At(double x) const { return slope * x + offset; }
};

struct MeasuredLine {
  Line line;
  // Of an interval of the level asked for, to either side. 0 where more than half of the
  // measurements lie on the line. Of what FitAboveZero holds at 0: how far above it the free fit's
  // interval reaches.
  Line half_width;
  double residual = 0;           // median distance of a measurement from the line
  double relative_residual = 0;  // median of the same over what the line says; 0 where that is 0
  int outliers = 0;              // measurements without any weight
};

// The coefficients that are free; the others are 0.
enum class LineShape : uint8_t { kFree, kThroughOrigin, kLevel };

inline constexpr size_t kFewestForOutliers = 8;

// REQUIRES: more measurements than free coefficients, all finite; x >= 0, not all of them equal
// with kFree, nor 0 with kThroughOrigin; 0 < level < 1.
MeasuredLine FitRobustly(std::span<const Measurement> measurements, LineShape shape, double level);

// The same with neither coefficient below 0: where one would be, the other is fitted alone.
// REQUIRES: y >= 0, and as above for kFree.
MeasuredLine FitAboveZero(std::span<const Measurement> measurements, double level);

// The line with the least sum of squares. REQUIRES: not all x are equal.
Line FitLeastSquares(std::span<const Measurement> measurements);

}  // namespace stepcast
