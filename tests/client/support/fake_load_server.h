// A server in simulated time: it serves one call at a time, in the order in which they come, and
// may pause.
//
// It is the clock and the transport of a load at once, so a run takes no time and is the same every
// time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

#include "client/src/load/load_run.h"

namespace stepcast::client {

// The time of a call that comes alone, and the span in which nothing is served.
struct FakeServing {
  std::chrono::nanoseconds service = std::chrono::milliseconds(1);
  std::chrono::nanoseconds pause_from{0};
  std::chrono::nanoseconds pause{0};
  absl::StatusCode code = absl::StatusCode::kOk;
  uint32_t calls_max = 100'000;

  // The end of a call that comes at `arrival`, the one before it having ended at `free`. One that
  // would be served in the pause begins after it.
  std::chrono::nanoseconds End(std::chrono::nanoseconds arrival,
                               std::chrono::nanoseconds free) const {
    const std::chrono::nanoseconds begin = std::max(arrival, free);
    const bool waits = pause_from <= begin && begin < pause_from + pause;
    return (waits ? pause_from + pause : begin) + service;
  }
};

class FakeLoadServer : public LoadClock, public LoadTransport {
 public:
  explicit FakeLoadServer(const FakeServing& serving) : serving_(serving) {}

  std::chrono::nanoseconds Now() override { return now_; }
  void SleepUntil(std::chrono::nanoseconds instant) override {
    while (!under_way_.empty() && under_way_.front().end <= instant) EndFirst();
    // Of a thread that nobody wakes in time.
    now_ = std::max(now_, instant + oversleep);
    while (!under_way_.empty() && under_way_.front().end <= now_) EndFirst();
  }

  uint32_t calls_max() const override { return serving_.calls_max; }
  void Start(uint32_t call, uint64_t question, Listener& listener) override {
    questions.push_back(question);
    free_ = serving_.End(now_, free_);
    under_way_.push_back({.call = call, .end = free_, .listener = &listener});
    most_under_way = std::max(most_under_way, under_way_.size());
  }
  void AwaitAll() override {
    while (!under_way_.empty()) EndFirst();
  }

  std::chrono::nanoseconds oversleep{0};
  std::vector<uint64_t> questions;  // in the order in which they came
  size_t most_under_way = 0;

 private:
  struct Call {
    uint32_t call = 0;
    std::chrono::nanoseconds end{0};
    Listener* listener = nullptr;
  };

  void EndFirst() {
    const Call first = under_way_.front();
    under_way_.pop_front();
    // A caller who overslept hears of ends late, but they were when they were.
    const std::chrono::nanoseconds overslept = now_;
    now_ = first.end;
    first.listener->OnEnded(first.call, serving_.code);
    now_ = std::max(now_, overslept);
  }

  const FakeServing serving_;
  std::chrono::nanoseconds now_{0};
  std::chrono::nanoseconds free_{0};
  std::deque<Call> under_way_;
};

}  // namespace stepcast::client
