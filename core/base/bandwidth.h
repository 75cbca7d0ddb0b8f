// The speed of a link.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/time.h"

namespace stepcast {

// Payload bytes per second, held to 1/1024 byte per second so that every computation with it is in
// integers.
//
// REQUIRES: kMinBytesPerSecond <= bytes_per_second <= kMaxBytesPerSecond (validation sees to it).
class Bandwidth {
 public:
  static constexpr double kMinBytesPerSecond = 1;
  static constexpr double kMaxBytesPerSecond = 1e15;

  explicit Bandwidth(double bytes_per_second)
      : units_(std::llround(bytes_per_second * kUnitsPerByte)) {}

  double bytes_per_second() const { return static_cast<double>(units_) / kUnitsPerByte; }
  // The time that the link takes for `bytes` alone.
  // Rounded to the nearest tick, halves up, at least one tick; kEndOfTime's ticks where it is
  // longer.
  Span TimeFor(int64_t bytes) const {
    const Wide units = static_cast<Wide>(units_);
    const Wide work = static_cast<Wide>(bytes) * kUnitsPerByte * kTicksPerSecond;
    return {Held((work + units / 2) / units)};
  }
  // This over `other`, in units of 1 / `one`, rounded to the nearest, at least one unit.
  int64_t RatioTo(Bandwidth other, int64_t one) const {
    const Wide divisor = static_cast<Wide>(other.units_);
    return Held((static_cast<Wide>(units_) * static_cast<Wide>(one) + divisor / 2) / divisor);
  }

  friend bool operator==(Bandwidth, Bandwidth) = default;
  // clang-tidy 14 takes the zero of a rewritten comparison for a pointer.
  friend auto operator<=>(Bandwidth, Bandwidth) = default;  // NOLINT(modernize-use-nullptr)

 private:
  using Wide = unsigned __int128;

  static constexpr int64_t kUnitsPerByte = 1024;
  static constexpr Wide kTicksPerSecond = Wide{1'000'000'000} * kTicksPerNanosecond;

  static int64_t Held(Wide value) {
    return static_cast<int64_t>(std::clamp<Wide>(value, 1, static_cast<Wide>(kEndOfTime.ticks)));
  }

  int64_t units_;  // 1/1024 byte per second
};

}  // namespace stepcast
