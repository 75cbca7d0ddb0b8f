// Time on the machine's monotonic clock, which all network namespaces share: no skew between the
// nodes of a testbed.
#pragma once

#include <time.h>

#include <cstdint>

namespace stepcast::testbed {

constexpr int64_t kNsPerSecond = 1'000'000'000;

inline int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

// Until an absolute time, so that waking late does not add up.
inline void SleepUntilNs(int64_t at_ns) {
  const timespec until{.tv_sec = at_ns / kNsPerSecond, .tv_nsec = at_ns % kNsPerSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

}  // namespace stepcast::testbed
