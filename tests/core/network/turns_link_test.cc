#include "core/network/turns_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "tests/core/network/every_turn.h"

namespace stepcast::turns_link_test {
namespace {

using Ends = std::vector<std::pair<int64_t, int32_t>>;  // tick, flow

// Runs the link until nothing is left.
template <typename Network>
Ends RunOut(Network& network, Instant next) {
  Ends ends;
  while (next < kEndOfTime) {
    std::vector<int32_t> ended;
    network.TakeEnded(next, ended);
    for (const int32_t flow : ended) ends.emplace_back(next.ticks, flow);
    next = network.Settle(next);
  }
  return ends;
}

TEST(TurnsLinkTest, WorkersTakeTurnsUntilTheirWorkIsDone) {
  TurnsLink link(3, Span{10});
  link.Start(2, Span{15});
  link.Start(0, Span{25});
  link.Start(1, Span{10});
  // 0: 0-10, 30-40, 45-50; 1: 10-20; 2: 20-30, 40-45.
  EXPECT_EQ(RunOut(link, link.Settle(Instant{0})), (Ends{{20, 1}, {45, 2}, {50, 0}}));
}

TEST(TurnsLinkTest, WhoeverWasIdleGoesFirstWhenTheTurnUnderWayIsOver) {
  TurnsLink link(3, Span{10});
  link.Start(0, Span{100});
  link.Start(1, Span{100});
  link.Settle(Instant{0});
  link.Start(2, Span{10});
  // In the midst of worker 1's first turn; worker 0 would be next.
  EXPECT_EQ(link.Settle(Instant{13}), Instant{30});
  EXPECT_EQ(RunOut(link, Instant{30}), (Ends{{30, 2}, {200, 0}, {210, 1}}));
}

TEST(TurnsLinkTest, AChunkThatFollowsAtOnceGoesOnWithTheTurn) {
  TurnsLink link(2, Span{10});
  link.Start(0, Span{4});
  link.Start(1, Span{10});
  ASSERT_EQ(link.Settle(Instant{0}), Instant{4});
  std::vector<int32_t> ended;
  link.TakeEnded(Instant{4}, ended);
  link.Start(0, Span{7});
  EXPECT_EQ(RunOut(link, link.Settle(Instant{4})), (Ends{{20, 1}, {21, 0}}));
}

TEST(TurnsLinkTest, AWorkerThatPausesLosesTheRestOfItsTurn) {
  TurnsLink link(2, Span{10});
  link.Start(0, Span{4});
  link.Start(1, Span{30});
  ASSERT_EQ(link.Settle(Instant{0}), Instant{4});
  std::vector<int32_t> ended;
  link.TakeEnded(Instant{4}, ended);
  EXPECT_EQ(link.Settle(Instant{4}), Instant{34});
  link.Start(0, Span{6});
  EXPECT_EQ(RunOut(link, link.Settle(Instant{5})), (Ends{{20, 0}, {40, 1}}));
}

TEST(TurnsLinkTest, WhatWaitsIsNotCarried) {
  TurnsLink link(2, Span{10});
  link.Start(0, Span{100});
  link.Start(1, Span{50});
  link.Settle(Instant{0});
  EXPECT_EQ(link.CarriedBy(Instant{60}, 0), 60);
}

// The link jumps over whole rounds of turns.
TEST(TurnsLinkTest, AgreesWithAnEventForEveryTurn) {
  int all_ended = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 61});
    const size_t workers = 1 + random.Below(8);
    const Span turn{1 + static_cast<int64_t>(random.Below(300))};
    const uint64_t longest = 1 + random.Below(4000);
    TurnsLink link(workers, turn);
    testing::EveryTurn obvious(workers, turn);
    std::vector<bool> busy(workers);
    Instant now;
    Instant next_end = kEndOfTime;
    for (int instant = 0; instant < 120; ++instant) {
      std::vector<int32_t> ended;
      if (now == next_end) link.TakeEnded(now, ended);
      ASSERT_EQ(ended, obvious.TakeEnded(now)) << "at " << now.ticks;
      all_ended += static_cast<int>(ended.size());
      for (const int32_t flow : ended) busy[static_cast<size_t>(flow)] = false;
      for (size_t flow = 0; flow < workers; ++flow) {
        const bool follows = !ended.empty() && static_cast<size_t>(ended.front()) == flow;
        if (busy[flow] || random.Below(follows ? 3 : 9) != 0) continue;
        busy[flow] = true;
        const Span work{1 + static_cast<int64_t>(random.Below(longest))};
        link.Start(static_cast<int32_t>(flow), work);
        obvious.Start(static_cast<int32_t>(flow), work);
      }
      next_end = link.Settle(now);
      ASSERT_EQ(next_end, obvious.Settle(now)) << "at " << now.ticks;
      const Instant later = now + Span{1 + static_cast<int64_t>(random.Below(longest))};
      now = random.Below(3) == 0
                ? std::min(later, next_end)
                : std::min(next_end, now + Span{4 * static_cast<int64_t>(longest)});
    }
  }
  EXPECT_GT(all_ended, 10'000);
}

}  // namespace
}  // namespace stepcast::turns_link_test
