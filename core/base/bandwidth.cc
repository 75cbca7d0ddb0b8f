#include "core/base/bandwidth.h"

#include <algorithm>
#include <cmath>

namespace stepcast {

namespace {

using Wide = unsigned __int128;

constexpr Wide kTicksPerSecond = Wide{1'000'000'000} * kTicksPerNanosecond;
constexpr int64_t kUnitsPerByte = 1024;

}  // namespace

Bandwidth::Bandwidth(double bytes_per_second)
    : units_(std::llround(bytes_per_second * kUnitsPerByte)) {}

Span Bandwidth::TimeFor(int64_t bytes) const {
  const Wide units = static_cast<Wide>(units_);
  const Wide work = static_cast<Wide>(bytes) * kUnitsPerByte * kTicksPerSecond;
  const Wide ticks = (work + units / 2) / units;
  const Wide longest = static_cast<Wide>(kEndOfTime.ticks);
  return {static_cast<int64_t>(std::clamp<Wide>(ticks, 1, longest))};
}

int64_t Bandwidth::RatioTo(Bandwidth other, int64_t one) const {
  const Wide scaled = static_cast<Wide>(units_) * static_cast<Wide>(one);
  const Wide divisor = static_cast<Wide>(other.units_);
  const Wide longest = static_cast<Wide>(kEndOfTime.ticks);
  return static_cast<int64_t>(std::clamp<Wide>((scaled + divisor / 2) / divisor, 1, longest));
}

}  // namespace stepcast
