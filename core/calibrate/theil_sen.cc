#include "core/calibrate/theil_sen.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/calibrate/weighted_median.h"

namespace stepcast {

namespace {

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

}  // namespace

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

}  // namespace stepcast
