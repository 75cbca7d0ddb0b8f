// Simulated time, in integer ticks.
//
// A tick is 1/2520 ns (0.4 ps). 2520 is the least number that 1 to 10 divide, so up to ten workers
// share a link without any rounding of the first division. A run lasts 21 days of simulated time at
// most (kEndOfTime).
#pragma once

#include <compare>
#include <cstdint>

namespace stepcast {

inline constexpr int64_t kTicksPerNanosecond = 2520;

// A length of simulated time.
struct Span {
  int64_t ticks = 0;

  // clang-tidy 14 takes the zero of a rewritten comparison for a pointer.
  friend constexpr auto operator<=>(Span, Span) = default;  // NOLINT(modernize-use-nullptr)
  constexpr Span& operator+=(Span other) {
    ticks += other.ticks;
    return *this;
  }
  friend constexpr Span operator+(Span a, Span b) { return {a.ticks + b.ticks}; }
  friend constexpr Span operator-(Span a, Span b) { return {a.ticks - b.ticks}; }
};

// A point of simulated time, counted from the start of the run.
struct Instant {
  int64_t ticks = 0;

  friend constexpr auto operator<=>(Instant, Instant) = default;  // NOLINT(modernize-use-nullptr)
  friend constexpr Instant operator+(Instant at, Span span) { return {at.ticks + span.ticks}; }
  friend constexpr Span operator-(Instant a, Instant b) { return {a.ticks - b.ticks}; }
};

// No run reaches this instant. Leaves room for one more addition of any valid span.
inline constexpr Instant kEndOfTime{int64_t{1} << 62};

constexpr Span Nanoseconds(int64_t ns) { return {ns * kTicksPerNanosecond}; }
constexpr Span Microseconds(int64_t us) { return Nanoseconds(us * 1000); }
constexpr Span Milliseconds(int64_t ms) { return Nanoseconds(ms * 1'000'000); }

// Rounds down to a tick. REQUIRES: 0 <= seconds < 1.8e6.
constexpr Span FromSeconds(double seconds) {
  return {static_cast<int64_t>(seconds * 1e9 * static_cast<double>(kTicksPerNanosecond))};
}

// Rounds to the nearest nanosecond, halves up.
constexpr int64_t ToNanoseconds(Span span) {
  const int64_t up = span.ticks + kTicksPerNanosecond / 2;
  return up / kTicksPerNanosecond - (up % kTicksPerNanosecond < 0 ? 1 : 0);
}
constexpr int64_t ToNanoseconds(Instant at) { return ToNanoseconds(Span{at.ticks}); }
constexpr double ToSeconds(Span span) {
  return static_cast<double>(span.ticks) / (1e9 * static_cast<double>(kTicksPerNanosecond));
}

}  // namespace stepcast
