#include "core/allocate/throughput_curve.h"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace stepcast {

namespace {

constexpr double kStep = 1.2;

}  // namespace

std::vector<int32_t> CountsToSimulate(const std::vector<int32_t>& counts) {
  if (counts.size() <= kMaxPlainCounts) return counts;
  std::vector<int32_t> chosen = {counts.front()};
  for (const int32_t count : counts) {
    if (count > chosen.back() && (count >= chosen.back() * kStep || count == counts.back()))
      chosen.push_back(count);
  }
  return chosen;
}

CurveValue ThroughputCurve::At(int32_t workers, int32_t servers) const {
  const auto above = std::lower_bound(points_.begin(), points_.end(), std::tuple(servers, workers),
                                      [](const CurvePoint& point, const auto& asked) {
                                        return std::tuple(point.servers, point.workers) < asked;
                                      });
  assert(above != points_.end() && above->servers == servers);
  if (above->workers == workers) return {.examples_per_second = above->examples_per_second};
  assert(above != points_.begin() && (above - 1)->servers == servers);
  const CurvePoint& below = *(above - 1);
  const double part =
      static_cast<double>(workers - below.workers) / (above->workers - below.workers);
  return {.examples_per_second = below.examples_per_second +
                                 part * (above->examples_per_second - below.examples_per_second),
          .interpolated = true};
}

}  // namespace stepcast
