#include "core/calibrate/measured_line.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/student_t.h"
#include "core/calibrate/biweight_fit.h"
#include "core/calibrate/line_moments.h"
#include "core/calibrate/weighted_median.h"

namespace stepcast {

namespace {

double Largest(std::span<const Measurement> measurements, double Measurement::*coordinate) {
  double largest = 0;
  for (const Measurement& m : measurements) largest = std::max(largest, std::abs(m.*coordinate));
  return largest > 0 ? largest : 1;
}

double MedianDistance(std::span<const Measurement> measurements, const Line& line) {
  std::vector<double> distances;
  for (const Measurement& m : measurements) distances.push_back(std::abs(m.y - line.At(m.x)));
  return Median(std::move(distances));
}

double MedianRelativeDistance(std::span<const Measurement> measurements, const Line& line) {
  std::vector<double> distances;
  for (const Measurement& m : measurements) {
    if (line.At(m.x) > 0) distances.push_back(std::abs(m.y - line.At(m.x)) / line.At(m.x));
  }
  return distances.empty() ? 0 : Median(std::move(distances));
}

}  // namespace

MeasuredLine FitRobustly(std::span<const Measurement> measurements, LineShape shape, double level) {
  const double x = Largest(measurements, &Measurement::x);
  const double y = Largest(measurements, &Measurement::y);
  std::vector<Measurement> scaled;
  scaled.reserve(measurements.size());
  for (const Measurement& m : measurements) scaled.push_back({.x = m.x / x, .y = m.y / y});
  const BiweightFit fit(scaled, shape);
  MeasuredLine measured{
      .line = {.slope = fit.line().slope * y / x, .offset = fit.line().offset * y}};
  for (const Measurement& m : scaled) measured.outliers += fit.IsOutlier(m) ? 1 : 0;
  const int counted = static_cast<int>(scaled.size()) - measured.outliers;
  const int degrees = counted - (shape == LineShape::kFree ? 2 : 1);
  if (degrees > 0) {
    const double quantile = StudentTQuantile(degrees, level);
    const Line errors = fit.StandardErrors(counted);
    measured.half_width = {.slope = quantile * errors.slope * y / x,
                           .offset = quantile * errors.offset * y};
  }
  measured.residual = MedianDistance(measurements, measured.line);
  measured.relative_residual = MedianRelativeDistance(measurements, measured.line);
  return measured;
}

MeasuredLine FitAboveZero(std::span<const Measurement> measurements, double level) {
  const MeasuredLine free = FitRobustly(measurements, LineShape::kFree, level);
  if (free.line.slope >= 0 && free.line.offset >= 0) return free;
  if (free.line.slope < 0) {
    MeasuredLine level_line = FitRobustly(measurements, LineShape::kLevel, level);
    level_line.half_width.slope = std::max(0.0, free.line.slope + free.half_width.slope);
    return level_line;
  }
  MeasuredLine through_origin = FitRobustly(measurements, LineShape::kThroughOrigin, level);
  through_origin.half_width.offset = std::max(0.0, free.line.offset + free.half_width.offset);
  return through_origin;
}

Line FitLeastSquares(std::span<const Measurement> measurements) {
  const double x = Largest(measurements, &Measurement::x);
  LineMoments moments;
  for (const Measurement& m : measurements) moments.Add({.x = m.x / x, .y = m.y}, 1);
  const Line line = moments.Solve(LineShape::kFree).value_or(Line{});
  return {.slope = line.slope / x, .offset = line.offset};
}

}  // namespace stepcast
