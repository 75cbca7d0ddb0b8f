// The time that the calling thread has spent computing, whatever else the machine is doing.
#pragma once

#include <ctime>

namespace stepcast::bench {

inline double ThreadCpuNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace stepcast::bench
