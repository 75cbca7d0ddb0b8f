#include "client/src/load/load_clock.h"

#include <thread>

namespace stepcast::client {

std::chrono::nanoseconds SteadyLoadClock::Now() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

void SteadyLoadClock::SleepUntil(std::chrono::nanoseconds instant) {
  std::this_thread::sleep_until(std::chrono::steady_clock::time_point(instant));
}

}  // namespace stepcast::client
