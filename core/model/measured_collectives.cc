#include "core/model/measured_collectives.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "absl/strings/str_cat.h"

#include "core/model/validate_profile.h"

namespace stepcast {

namespace {

auto PlaceOf(const MeasuredCollective& point) {
  return std::tuple(point.kind, point.workers, point.size_bytes);
}

void CheckPoint(const MeasuredCollective& point, const std::string& path, FaultList& faults) {
  const auto at_least = [&](const char* field, int64_t value, int64_t least, int64_t most) {
    faults.AddIf(value < least, path + field, value, " is not from ", least, " to ", most);
  };
  if (point.kind == Collective::kUnspecified)
    faults.Add(path + ".kind", "a measured collective needs a kind");
  at_least(".workers", point.workers, 2, INT32_MAX);
  at_least(".size_bytes", point.size_bytes, 1, INT64_MAX);
  faults.AddIf(!(point.seconds > 0 && std::isfinite(point.seconds)), path + ".seconds",
               point.seconds, " is not a time above 0");
}

}  // namespace

std::vector<MeasuredCollective> CheckedPoints(std::vector<MeasuredCollective> points, bool are_used,
                                              const std::string& path, int64_t max_points,
                                              FaultList& faults) {
  const auto count = static_cast<int64_t>(points.size());
  if (count > max_points) {
    faults.Add(path, OverLimit(count, "max_measured", max_points));
    return {};
  }
  for (size_t i = 0; i < points.size(); ++i)
    CheckPoint(points[i], absl::StrCat(path, "[", i, "]"), faults);
  std::sort(points.begin(), points.end(),
            [](const auto& a, const auto& b) { return PlaceOf(a) < PlaceOf(b); });
  const auto twice =
      std::adjacent_find(points.begin(), points.end(),
                         [](const auto& a, const auto& b) { return PlaceOf(a) == PlaceOf(b); });
  if (twice != points.end()) {
    faults.Add(path,
               absl::StrCat("two times, ", twice->seconds, " and ", twice[1].seconds, " s, for ",
                            twice->size_bytes, " bytes of ", twice->workers, " workers"));
    return points;
  }
  const bool has_all_reduce = std::any_of(points.begin(), points.end(), [](const auto& point) {
    return point.kind == Collective::kAllReduce;
  });
  if (are_used && !points.empty() && !has_all_reduce)
    faults.Add(path, "has no ALL_REDUCE, from which the others would follow");
  return points;
}

}  // namespace stepcast
