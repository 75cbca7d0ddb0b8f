// The time, from the machine or from a test.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace stepcast::server {

inline constexpr int64_t kNsPerSecond = 1'000'000'000;

class Clock {
 public:
  virtual ~Clock() = default;

  // Nanoseconds from an arbitrary origin; never goes back. For durations and deadlines.
  virtual int64_t MonotonicNs() const = 0;
  // Nanoseconds since the Unix epoch; may jump. For what people read.
  virtual int64_t WallNs() const = 0;
};

// The machine's clocks. Cost: about 20 ns a call.
class RealClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return NsOf(std::chrono::steady_clock::now()); }
  int64_t WallNs() const override { return NsOf(std::chrono::system_clock::now()); }

 private:
  template <typename TimePoint>
  static int64_t NsOf(TimePoint instant) {
    return std::chrono::nanoseconds(instant.time_since_epoch()).count();
  }
};

// A clock that stands still until it is told to move.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(int64_t wall_ns = 1'700'000'000'000'000'000) : wall_ns_(wall_ns) {}

  int64_t MonotonicNs() const override { return monotonic_ns_.load(); }
  int64_t WallNs() const override { return wall_ns_.load(); }
  // Moves both clocks on. REQUIRES: ns >= 0.
  void Advance(int64_t ns) {
    monotonic_ns_ += ns;
    wall_ns_ += ns;
  }
  // Sets the wall clock only, as an administrator would.
  void SetWall(int64_t ns) { wall_ns_ = ns; }

 private:
  std::atomic<int64_t> monotonic_ns_{0};
  std::atomic<int64_t> wall_ns_;
};

}  // namespace stepcast::server
