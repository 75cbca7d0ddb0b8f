// The speed of a link.
#pragma once

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

  explicit Bandwidth(double bytes_per_second);

  double bytes_per_second() const { return static_cast<double>(units_) / 1024.0; }
  // The time that the link takes for `bytes` alone.
  // Rounded to the nearest tick, halves up, at least one tick; kEndOfTime's ticks where it is
  // longer.
  Span TimeFor(int64_t bytes) const;
  // This over `other`, in units of 1 / `one`, rounded to the nearest, at least one unit.
  int64_t RatioTo(Bandwidth other, int64_t one) const;

  friend bool operator==(Bandwidth, Bandwidth) = default;
  // clang-tidy 14 takes the zero of a rewritten comparison for a pointer.
  friend auto operator<=>(Bandwidth, Bandwidth) = default;  // NOLINT(modernize-use-nullptr)

 private:
  int64_t units_;  // 1/1024 byte per second
};

}  // namespace stepcast
