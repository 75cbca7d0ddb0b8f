// Waits for other threads and processes: the one place where tests in C++ look at a clock.
//
// Each wait ends by what it waits for. kHang only turns a hang into a failure, so it is longer than
// any machine takes, however busy; no verdict may hang on how long something took.
#pragma once

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

namespace stepcast {

inline constexpr std::chrono::minutes kHang{10};

// True once the condition holds; false: a hang. For what tells nobody when it changes.
template <typename Condition>
bool Eventually(const Condition& holds) {
  constexpr std::chrono::milliseconds kPause{5};
  const auto hang = std::chrono::steady_clock::now() + kHang;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > hang) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

// The same, of a condition whose changes are notified.
template <typename Condition>
bool Eventually(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                const Condition& holds) {
  return changed.wait_for(lock, kHang, holds);
}

// The same, of a value that another thread sets.
template <typename Value>
bool Eventually(const std::shared_future<Value>& value) {
  return value.wait_for(kHang) == std::future_status::ready;
}

// The deadline of a call that is to be over by then: for calls whose work takes longer than any
// deadline, so that it passes on every machine.
inline std::chrono::system_clock::time_point DeadlineIn(std::chrono::nanoseconds timeout) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout);
}

}  // namespace stepcast
