// One random history of chunks, lived through by two networks at once that are to agree on every
// answer.
//
// Workers take turns of being eager and lazy, so that hubs are crowded at one time and nearly
// idle at another; many chunks follow the one before at the same instant, and many are of the same
// work, so that they end together.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "core/network/link_level.h"

namespace stepcast::testing {

struct NetworkShape {
  int32_t hubs = 1;
  std::vector<int64_t> capacities;  // of workers, in units of 1/kUnit of a hub's link
};

// W 1..max_workers, M 1..8; capacities both below and above a hub's.
inline NetworkShape RandomShape(Random& random, uint64_t max_workers) {
  NetworkShape shape{.hubs = static_cast<int32_t>(1 + random.Below(8))};
  const uint64_t workers = 1 + random.Below(max_workers);
  const uint64_t kind = random.Below(5);
  for (uint64_t worker = 0; worker < workers; ++worker) {
    int64_t capacity = LinkLevel::kUnit;
    if (kind == 1 && random.Below(2) == 0) capacity /= static_cast<int64_t>(1 + random.Below(40));
    if (kind == 2) capacity = static_cast<int64_t>(1 + random.Below(2 * LinkLevel::kUnit));
    // Some next to nothing, the others a quarter to two and a quarter.
    if (kind == 3)
      capacity = random.Below(8) == 0 ? 1 + static_cast<int64_t>(random.Below(20))
                                      : capacity / 4 * static_cast<int64_t>(1 + random.Below(9));
    // The sum of some hubs' levels, and a unit more or less.
    if (kind == 4)
      capacity = capacity / static_cast<int64_t>(1 + random.Below(6)) *
                     static_cast<int64_t>(1 + random.Below(4)) +
                 static_cast<int64_t>(random.Below(5)) - 1;
    shape.capacities.push_back(capacity);
  }
  return shape;
}

// Workers' own links that cannot bind.
inline NetworkShape RoomyShape(Random& random, uint64_t max_workers) {
  NetworkShape shape{.hubs = static_cast<int32_t>(1 + random.Below(8))};
  const uint64_t workers = 1 + random.Below(max_workers);
  for (uint64_t worker = 0; worker < workers; ++worker) {
    shape.capacities.push_back(LinkLevel::kUnit * shape.hubs +
                               static_cast<int64_t>(random.Below(2)));
  }
  return shape;
}

template <typename One, typename Other>
class NetworkHistory {
 public:
  NetworkHistory(uint64_t seed, NetworkShape shape, One one, Other other)
      : random_({seed, 23}),
        shape_(std::move(shape)),
        one_(std::move(one)),
        other_(std::move(other)),
        busy_(shape_.capacities.size() * static_cast<size_t>(shape_.hubs), false),
        longest_((int64_t{1} << std::array{10, 12, 20, 30, 46, 60}[random_.Below(6)]) /
                 static_cast<int64_t>(shape_.capacities.size())) {}

  void Live(int instants) {
    for (int i = 0; i < instants && !::testing::Test::HasFatalFailure(); ++i) {
      if (i % 40 == 0) eagerness_ = random_.Below(4);
      LiveInstant();
      const Instant next = NextInstant();
      // So late that no more can be started.
      if (next.ticks > kEndOfTime.ticks / 2) return;
      if (next < next_end_) CompareCarried(next);
      now_ = next;
    }
  }

  int ended() const { return ended_; }

 private:
  void LiveInstant() {
    if (now_ == next_end_) TakeEnded();
    StartSome();
    next_end_ = one_.Settle(now_);
    ASSERT_EQ(next_end_, other_.Settle(now_)) << "at " << now_.ticks;
    if (random_.Below(4) == 0) CompareCarried(now_);
  }

  Instant NextInstant() {
    const Instant later =
        now_ + Span{static_cast<int64_t>(1 + random_.Below(static_cast<uint64_t>(longest_)))};
    if (next_end_ == kEndOfTime) return later;
    return random_.Below(4) == 0 ? std::min(next_end_, later) : next_end_;
  }

  void TakeEnded() {
    std::vector<int32_t> ended;
    std::vector<int32_t> others;
    one_.TakeEnded(now_, ended);
    other_.TakeEnded(now_, others);
    std::sort(ended.begin(), ended.end());
    std::sort(others.begin(), others.end());
    ASSERT_EQ(ended, others) << "at " << now_.ticks;
    ended_ += static_cast<int>(ended.size());
    for (const int32_t flow : ended) {
      busy_[static_cast<size_t>(flow)] = false;
      if (random_.Below(3) != 0) Start(static_cast<size_t>(flow));
    }
  }

  void StartSome() {
    for (size_t flow = 0; flow < busy_.size(); ++flow) {
      if (!busy_[flow] && random_.Below(8) < eagerness_ * eagerness_) Start(flow);
    }
  }

  void Start(size_t flow) {
    const Span work{random_.Below(2) == 0
                        ? longest_
                        : static_cast<int64_t>(1 + random_.Below(static_cast<uint64_t>(longest_)))};
    one_.Start(static_cast<int32_t>(flow), work);
    other_.Start(static_cast<int32_t>(flow), work);
    busy_[flow] = true;
  }

  void CompareCarried(Instant at) {
    for (int32_t hub = 0; hub < shape_.hubs; ++hub) {
      ASSERT_EQ(one_.CarriedBy(at, hub), other_.CarriedBy(at, hub))
          << "at " << at.ticks << ", hub " << hub;
    }
  }

  Random random_;
  const NetworkShape shape_;
  One one_;
  Other other_;
  std::vector<bool> busy_;  // by flow
  const int64_t
      longest_;  // ticks; all workers' together are far from an int64's end, as the engine sees to
  uint64_t eagerness_ = 0;
  Instant now_;
  Instant next_end_ = kEndOfTime;
  int ended_ = 0;
};

}  // namespace stepcast::testing
