#include "core/calibrate/measured_line.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/distributions.h"
#include "core/base/random.h"
#include "core/calibrate/robust_statistics.h"

namespace stepcast {

namespace {

// The scale of the noise around a line: a standard deviation that may grow with what the line says.
//
// Source: Glejser, "A New Test for Heteroskedasticity", JASA 1969, with medians for means:
// measurements are put into up to six groups by what the line says, each group's scale is 1.4826
// times the median of its distances, and a line (Theil and Sen's, neither coefficient below 0) goes
// through the groups.
// Below 20 measurements all have one scale.
// Threads: immutable.
// Cost: O(n log n).
class NoiseScale {
 public:
  NoiseScale() = default;

  // REQUIRES: !measurements.empty(); the largest x and y are about 1.
  static NoiseScale Of(std::span<const Measurement> measurements, const Line& line);

  // More than half of the measurements lie on the line.
  bool IsNone() const { return constant_ <= 0; }
  // Scale at a measurement of which the line says `fitted`. REQUIRES: !IsNone().
  double At(double fitted) const { return constant_ + (fitted > 0 ? growth_ * fitted : 0); }

 private:
  double constant_ = 0;
  double growth_ = 0;
};

// Noise of measurements that are about 1: less is what arithmetic leaves.
constexpr double kRounding = 1e-13;
constexpr size_t kFewestToGroup = 48;
constexpr size_t kFewestInGroup = 16;
// From a group's least value to the next one's: tensors of about one size are one group, however
// many there are.
constexpr double kGroupGrowth = 2;
// The scale is nowhere less than this share of that of all measurements together: a group may lie
// on the line by chance.
constexpr double kMinShare = 0.02;

struct Distance {
  double fitted = 0;
  double distance = 0;
};

std::vector<Distance> DistancesInOrder(std::span<const Measurement> measurements,
                                       const Line& line) {
  std::vector<Distance> distances;
  distances.reserve(measurements.size());
  for (const Measurement& m : measurements)
    distances.push_back({.fitted = line.At(m.x), .distance = std::abs(m.y - line.At(m.x))});
  std::sort(distances.begin(), distances.end(),
            [](const Distance& a, const Distance& b) { return a.fitted < b.fitted; });
  return distances;
}

double ScaleOf(std::span<const Distance> distances) {
  std::vector<double> values;
  values.reserve(distances.size());
  for (const Distance& d : distances) values.push_back(d.distance);
  return kDeviationPerMedian * Median(std::move(values));
}

std::vector<Measurement> GroupScales(std::span<const Distance> distances) {
  std::vector<size_t> begins = {0};
  for (size_t i = kFewestInGroup; i + kFewestInGroup <= distances.size(); ++i) {
    const bool is_far = distances[i].fitted > 0 &&
                        distances[i].fitted >= kGroupGrowth * distances[begins.back()].fitted;
    if (is_far && i - begins.back() >= kFewestInGroup) begins.push_back(i);
  }
  std::vector<Measurement> scales;
  for (size_t g = 0; g < begins.size(); ++g) {
    const size_t end = g + 1 < begins.size() ? begins[g + 1] : distances.size();
    const auto group = distances.subspan(begins[g], end - begins[g]);
    scales.push_back({.x = group[group.size() / 2].fitted, .y = ScaleOf(group)});
  }
  return scales;
}

NoiseScale NoiseScale::Of(std::span<const Measurement> measurements, const Line& line) {
  const std::vector<Distance> distances = DistancesInOrder(measurements, line);
  NoiseScale noise;
  noise.constant_ = ScaleOf(distances);
  if (noise.constant_ < kRounding) return {};
  if (distances.size() < kFewestToGroup) return noise;
  const std::vector<Measurement> groups = GroupScales(distances);
  std::vector<WeightedValue> slopes;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double apart = groups[i].x - groups[j].x;
      if (apart > 0)
        slopes.push_back({.value = (groups[i].y - groups[j].y) / apart, .weight = apart});
    }
  }
  if (slopes.empty()) return noise;
  noise.growth_ = std::max(0.0, WeightedMedian(std::move(slopes)));
  if (noise.growth_ <= 0) return noise;
  std::vector<double> offsets;
  offsets.reserve(groups.size());
  for (const Measurement& group : groups)
    offsets.push_back(group.y - noise.growth_ * std::max(group.x, 0.0));
  noise.constant_ = std::max(Median(std::move(offsets)), kMinShare * noise.constant_);
  return noise;
}

constexpr size_t kAllPairsUpTo = 700;
constexpr int kSampledPairs = 250'000;

class PairSlopes {
 public:
  void Add(const Measurement& a, const Measurement& b) {
    const double apart = a.x - b.x;
    if (apart != 0) slopes_.push_back({.value = (a.y - b.y) / apart, .weight = std::abs(apart)});
  }
  double Middle() && { return WeightedMedian(std::move(slopes_)); }

 private:
  std::vector<WeightedValue> slopes_;
};

double MiddleSlope(std::span<const Measurement> measurements) {
  PairSlopes slopes;
  const size_t n = measurements.size();
  if (n <= kAllPairsUpTo) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < i; ++j) slopes.Add(measurements[i], measurements[j]);
    }
    return std::move(slopes).Middle();
  }
  // The extremes, too: a sample may miss a size that is rare, and must not be without a slope.
  const auto by_x = [](const Measurement& a, const Measurement& b) { return a.x < b.x; };
  const auto [least, most] = std::minmax_element(measurements.begin(), measurements.end(), by_x);
  slopes.Add(*least, *most);
  Random random({n});
  for (int i = 0; i < kSampledPairs; ++i) {
    const Measurement& a = measurements[random.Below(n)];
    slopes.Add(a, measurements[random.Below(n)]);
  }
  return std::move(slopes).Middle();
}

double MiddleOffset(std::span<const Measurement> measurements, double slope, double largest_x) {
  std::vector<double> offsets;
  for (const Measurement& m : measurements) {
    if (m.x <= largest_x) offsets.push_back(m.y - slope * m.x);
  }
  return Median(std::move(offsets));
}

// The line that half of the measurements cannot move far: where a robust fit starts.
//
// Source: Theil (1950) and Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau",
// JASA 1968: the median of all pairs' slopes, here each weighted by its distance in x, so that many
// measurements of one size say nothing. The offset is a median over the smaller half, where the
// noise is least. Cost: O(n log n) for up to 250,000 pairs; of more than 700 measurements, as many
// pairs drawn from a fixed seed.
// REQUIRES: as FitRobustly.
Line TheilSenLine(std::span<const Measurement> measurements, LineShape shape) {
  if (shape == LineShape::kThroughOrigin) {
    std::vector<WeightedValue> slopes;
    for (const Measurement& m : measurements) {
      if (m.x > 0) slopes.push_back({.value = m.y / m.x, .weight = m.x});
    }
    return {.slope = WeightedMedian(std::move(slopes))};
  }
  std::vector<double> sizes;
  for (const Measurement& m : measurements) sizes.push_back(m.x);
  if (shape == LineShape::kLevel)
    return {.offset = MiddleOffset(measurements, 0, *std::max_element(sizes.begin(), sizes.end()))};
  const double slope = MiddleSlope(measurements);
  return {.slope = slope, .offset = MiddleOffset(measurements, slope, Median(std::move(sizes)))};
}

// Iterated weighted least squares with Tukey's biweight, of measurements that are about 1.
//
// Source: Beaton and Tukey, Technometrics 1974; Huber, "Robust Statistics", 1981, for the
// covariance. Threads: none.
class BiweightFit {
 public:
  // Fits at once. Borrows. REQUIRES: as FitRobustly; the largest x and y are about 1.
  BiweightFit(std::span<const Measurement> measurements, LineShape shape);

  const Line& line() const { return line_; }
  double Residual(const Measurement& m) const { return m.y - line_.At(m.x); }
  bool IsOutlier(const Measurement& m) const;
  // Errors of slope and offset. `counted`: measurements that are no outliers.
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

constexpr int kMaxIterations = 100;
// From then on the noise is taken as it is, so that the iteration ends.
constexpr int kNoiseIterations = 15;
constexpr double kConverged = 1e-10;

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
  return Residual(m) / (kBiweightReach * noise_.At(line_.At(m.x)));
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
