// The moments of a weighted least squares line: the sums over 1 and x that it needs of its
// measurements, a symmetric 2 x 2 matrix and what belongs to its right.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/calibrate/measured_line.h"

namespace stepcast {

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
