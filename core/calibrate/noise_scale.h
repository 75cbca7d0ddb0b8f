// The scale of the noise around a line: a standard deviation that may grow with what the line says.
//
// Source: Glejser, "A New Test for Heteroskedasticity", JASA 1969, with medians for means:
// measurements are put into up to six groups by what the line says, each group's scale is 1.4826
// times the median of its distances, and a line (Theil and Sen's, neither coefficient below 0) goes
// through the groups.
// Below 20 measurements all have one scale.
// Threads: immutable.
// Cost: O(n log n).
#pragma once

#include <span>

#include "core/calibrate/measured_line.h"

namespace stepcast {

class NoiseScale {
 public:
  NoiseScale() = default;

  // REQUIRES: !measurements.empty(); the largest x and y are about 1.
  static NoiseScale Of(std::span<const Measurement> measurements, const Line& line);

  // More than half of the measurements lie on the line.
  bool IsNone() const { return constant_ <= 0; }
  // Of a measurement of which the line says `fitted`. REQUIRES: !IsNone().
  double At(double fitted) const { return constant_ + (fitted > 0 ? growth_ * fitted : 0); }

 private:
  double constant_ = 0;
  double growth_ = 0;
};

}  // namespace stepcast
