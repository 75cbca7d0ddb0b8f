#include "core/calibrate/biweight_fit.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/calibrate/theil_sen.h"

namespace stepcast {

namespace {

constexpr double kReach = 4.685;
constexpr int kMaxIterations = 100;
// From then on the noise is taken as it is, so that the iteration ends.
constexpr int kNoiseIterations = 15;
constexpr double kConverged = 1e-10;

double Biweight(double u) { return std::abs(u) < 1 ? (1 - u * u) * (1 - u * u) : 0; }

// The derivative of u * Biweight(u).
double BiweightSlope(double u) { return std::abs(u) < 1 ? (1 - u * u) * (1 - 5 * u * u) : 0; }

}  // namespace

BiweightFit::BiweightFit(std::span<const Measurement> measurements, LineShape shape)
    : measurements_(measurements), shape_(shape) {
  if (IsPlain()) {
    LineMoments moments;
    for (const Measurement& m : measurements_) moments.Add(m, 1);
    line_ = moments.Solve(shape_).value_or(Line{});
    noise_ = NoiseScale::Of(measurements_, line_);
  } else {
    line_ = TheilSenLine(measurements_, shape_);
    noise_ = NoiseScale::Of(measurements_, line_);
    Iterate();
  }
}

void BiweightFit::Iterate() {
  for (int i = 0; i < kMaxIterations && !noise_.IsNone(); ++i) {
    const std::optional<Line> next = Weighted([](double u) { return Biweight(u); }).Solve(shape_);
    if (!next) return;  // one size is left: no line is better than the last one
    const double change =
        std::abs(next->slope - line_.slope) + std::abs(next->offset - line_.offset);
    line_ = *next;
    if (i < kNoiseIterations) {
      noise_ = NoiseScale::Of(measurements_, line_);
    } else if (change < kConverged) {
      return;
    }
  }
}

double BiweightFit::U(const Measurement& m) const {
  return Residual(m) / (kReach * noise_.At(line_.At(m.x)));
}

// `weight` of U, over the square of the noise.
template <typename Weight>
LineMoments BiweightFit::Weighted(Weight weight) const {
  LineMoments moments;
  for (const Measurement& m : measurements_) {
    const double scale = noise_.At(line_.At(m.x));
    moments.Add(m, weight(U(m)) / (scale * scale));
  }
  return moments;
}

bool BiweightFit::IsOutlier(const Measurement& m) const {
  if (IsPlain()) return false;
  return noise_.IsNone() ? std::abs(Residual(m)) > kConverged : std::abs(U(m)) >= 1;
}

Line BiweightFit::StandardErrors(double counted) const {
  const double free = shape_ == LineShape::kFree ? 2 : 1;
  if (noise_.IsNone() || counted <= free) return {};
  const auto weigh = [plain = IsPlain()](double u) { return plain ? 1 : Biweight(u); };
  const LineMoments weights = Weighted(weigh);
  if (!weights.Solve(shape_)) return {};
  LineMoments slopes =
      Weighted([plain = IsPlain()](double u) { return plain ? 1 : BiweightSlope(u); });
  LineMoments squares;
  double spread = 0;
  for (const Measurement& m : measurements_) {
    const double scale = noise_.At(line_.At(m.x));
    const double pull = weigh(U(m)) * Residual(m) / (scale * scale);
    squares.Add(m, pull * pull);
    spread += pull * Residual(m);
  }
  // Few measurements may have none but steep parts.
  if (slopes.one <= 0 || slopes.xx <= 0 || (shape_ == LineShape::kFree && slopes.IsSingular()))
    slopes = weights;
  const Line sandwich = slopes.StandardErrors(squares, counted / (counted - free), shape_);
  const Line classical = weights.StandardErrors(weights, spread / (counted - free), shape_);
  return {.slope = std::max(sandwich.slope, classical.slope),
          .offset = std::max(sandwich.offset, classical.offset)};
}

}  // namespace stepcast
