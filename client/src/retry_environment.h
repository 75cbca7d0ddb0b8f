// The world of retrying: time, waiting and chance.
#pragma once

#include <chrono>
#include <memory>

namespace stepcast::client {

// Threads: safe.
class RetryEnvironment {
 public:
  using Time = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

  virtual ~RetryEnvironment() = default;

  virtual Time Now() = 0;
  virtual void Sleep(std::chrono::nanoseconds length) = 0;
  // Uniform in [0, 1).
  virtual double Chance() = 0;
};

// The steady clock, and a generator seeded by the system's random device.
std::unique_ptr<RetryEnvironment> MakeSystemRetryEnvironment();

}  // namespace stepcast::client
