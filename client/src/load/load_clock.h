// The time that a load is measured in.
//
// An instant is the time since some beginning, which is the clock's own. Threads: safe.
#pragma once

#include <chrono>

namespace stepcast::client {

class LoadClock {
 public:
  virtual ~LoadClock() = default;

  virtual std::chrono::nanoseconds Now() = 0;
  // Returns at `instant` or, because threads are late, after it; at once if it has passed.
  virtual void SleepUntil(std::chrono::nanoseconds instant) = 0;
};

// The system's steady one.
class SteadyLoadClock : public LoadClock {
 public:
  std::chrono::nanoseconds Now() override;
  void SleepUntil(std::chrono::nanoseconds instant) override;
};

}  // namespace stepcast::client
