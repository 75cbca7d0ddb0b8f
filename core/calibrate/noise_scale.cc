#include "core/calibrate/noise_scale.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/calibrate/weighted_median.h"

namespace stepcast {

namespace {

// Of a normal distribution: standard deviation over median absolute deviation.
constexpr double kPerMedianDeviation = 1.4826;
// Of measurements that are about 1: less is what arithmetic leaves.
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
  return kPerMedianDeviation * Median(std::move(values));
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

}  // namespace

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

}  // namespace stepcast
