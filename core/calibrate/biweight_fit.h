// Iterated weighted least squares with Tukey's biweight, of measurements that are about 1.
//
// Source: Beaton and Tukey, Technometrics 1974; Huber, "Robust Statistics", 1981, for the
// covariance. Threads: none.
#pragma once

#include <span>

#include "core/calibrate/line_moments.h"
#include "core/calibrate/measured_line.h"
#include "core/calibrate/noise_scale.h"

namespace stepcast {

class BiweightFit {
 public:
  // Fits at once. Borrows. REQUIRES: as FitRobustly; the largest x and y are about 1.
  BiweightFit(std::span<const Measurement> measurements, LineShape shape);

  const Line& line() const { return line_; }
  double Residual(const Measurement& m) const { return m.y - line_.At(m.x); }
  bool IsOutlier(const Measurement& m) const;
  // Of slope and offset. `counted`: measurements that are no outliers.
  Line StandardErrors(double counted) const;

 private:
  bool IsPlain() const { return measurements_.size() < kFewestForOutliers; }
  void Iterate();
  // Residual in units of the biweight's reach. REQUIRES: there is noise.
  double U(const Measurement& m) const;
  template <typename Weight>
  LineMoments Weighted(Weight weight) const;

  std::span<const Measurement> measurements_;
  LineShape shape_;
  Line line_;
  NoiseScale noise_;
};

}  // namespace stepcast
