// A straight line through measurements of which some may be far off: y = slope * x + offset.
//
// From Theil and Sen's line on, iterated weighted least squares with Tukey's biweight (c = 4.685:
// 95 % of least squares' precision where the noise is normal), which gives gross outliers no weight
// at all. The noise may grow with the line. Intervals are Student's t with Huber's sandwich
// covariance (1967), or with the spread around the line where that is wider. Fewer than
// kFewestForOutliers measurements cannot tell an outlier from another: plain least squares.
// Threads: pure functions. Cost: O(n log n), up to 100 passes, and up to 250,000 pairs for the
// start.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
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
  // Half an interval of the level asked for. 0 where more than half of the measurements lie on the
  // line. Where FitAboveZero holds a coefficient at 0: how far above it the free fit's interval
  // reaches.
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

// The moments of a weighted least squares line: the sums over 1 and x that it needs of its
// measurements, a symmetric 2 x 2 matrix and what belongs to its right.
struct LineMoments {
  double one = 0;
  double x = 0;
  double xx = 0;
  double y = 0;
  double xy = 0;

  void Add(const Measurement& m, double weight) {
    one += weight;
    x += weight * m.x;
    xx += weight * m.x * m.x;
    y += weight * m.y;
    xy += weight * m.x * m.y;
  }

  double determinant() const { return one * xx - x * x; }
  // Empty where the measurements with any weight have but one x.
  bool IsSingular() const { return !(determinant() > 1e-12 * one * xx); }

  std::optional<Line> Solve(LineShape shape) const {
    switch (shape) {
      case LineShape::kThroughOrigin:
        return xx > 0 ? std::optional<Line>({.slope = xy / xx}) : std::nullopt;
      case LineShape::kLevel:
        return one > 0 ? std::optional<Line>({.offset = y / one}) : std::nullopt;
      case LineShape::kFree:
        break;
    }
    if (IsSingular()) return std::nullopt;
    return Line{.slope = (one * xy - x * y) / determinant(),
                .offset = (xx * y - x * xy) / determinant()};
  }

  // Square roots of the diagonal of this^-1 * middle * this^-1, times `factor` below the root.
  // REQUIRES: Solve gives a line.
  Line StandardErrors(const LineMoments& middle, double factor, LineShape shape) const {
    if (shape == LineShape::kThroughOrigin) return {.slope = std::sqrt(factor * middle.xx) / xx};
    if (shape == LineShape::kLevel) return {.offset = std::sqrt(factor * middle.one) / one};
    const double slope = x * x * middle.one - 2 * one * x * middle.x + one * one * middle.xx;
    const double offset = xx * xx * middle.one - 2 * xx * x * middle.x + x * x * middle.xx;
    const auto root = [&](double value) {
      return std::sqrt(factor * std::max(value, 0.0)) / determinant();
    };
    return {.slope = root(slope), .offset = root(offset)};
  }
};

}  // namespace stepcast
