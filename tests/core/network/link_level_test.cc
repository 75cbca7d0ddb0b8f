#include "core/network/link_level.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "core/base/random.h"
#include "core/base/time.h"
#include "tests/core/network/exact.h"

namespace stepcast::link_level_test {
namespace {

using testing::Exact;

constexpr int64_t kUnit = LinkLevel::kUnit;

LinkLevel RandomLevel(Random& random) {
  const auto flows = static_cast<int64_t>(1 + random.Below(4096));
  const auto residual = static_cast<int64_t>(
      random.Below(3) == 0 ? kUnit : flows + random.Below(static_cast<uint64_t>(kUnit - flows)));
  return {.residual = residual, .flows = flows};
}

TEST(LinkLevelTest, ProductsAreExactBeforeTheyAreRoundedUpToTheEndOfTime) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 30});
    const LinkLevel level = RandomLevel(random);
    const Exact rate = Exact(level.residual) / level.flows / kUnit;
    const auto ticks = static_cast<int64_t>(random.Next() >> (2 + random.Below(60)));
    const Exact done = rate * ticks;
    const int64_t work = level.WorkIn(Span{ticks});
    ASSERT_TRUE(work <= done && done < work + 1);
    const Exact needed = Exact(ticks) / rate;
    const int64_t span = level.TimeFor(ticks).ticks;
    if (needed > kEndOfTime.ticks) {
      ASSERT_EQ(span, kEndOfTime.ticks);
    } else {
      ASSERT_TRUE(span >= needed && span - 1 < needed);
    }
  }
}

TEST(LinkLevelTest, FractionsOfTheSameValueAreEqual) {
  EXPECT_EQ((LinkLevel{.residual = kUnit, .flows = 2}),
            (LinkLevel{.residual = kUnit / 2, .flows = 1}));
  EXPECT_FALSE((LinkLevel{.residual = kUnit, .flows = 2}) ==
               (LinkLevel{.residual = kUnit, .flows = 3}));
  EXPECT_FALSE((LinkLevel{.residual = kUnit, .flows = 2}) == LinkLevel{});
  EXPECT_FALSE((LinkLevel{.residual = 0, .flows = 0}) ==
               (LinkLevel{.residual = kUnit, .flows = 3}));
}

TEST(LevelClockTest, ShowsAVirtualTimeFirstAtItsInstant) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 31});
    LevelClock clock;
    Instant now;
    for (int i = 0; i < 20; ++i) {
      now = now + Span{static_cast<int64_t>(random.Below(1'000'000))};
      const int64_t shown = clock.VirtualAt(now);
      clock.SetLevel(now, RandomLevel(random));
      ASSERT_EQ(clock.VirtualAt(now), shown);
      const int64_t later = shown + static_cast<int64_t>(1 + random.Below(10'000));
      const Instant at = clock.InstantOf(later);
      ASSERT_GE(clock.VirtualAt(at), later);
      ASSERT_LT(clock.VirtualAt(at + Span{-1}), later);
    }
  }
}

TEST(LevelClockTest, StandsStillWithoutFlows) {
  LevelClock clock;
  clock.SetLevel(Instant{0}, {.residual = kUnit, .flows = 2});
  clock.SetLevel(Instant{10}, LinkLevel{});
  EXPECT_EQ(clock.VirtualAt(Instant{100}), 5);
  clock.SetLevel(Instant{100}, {.residual = kUnit, .flows = 1});
  EXPECT_EQ(clock.VirtualAt(Instant{103}), 8);
}

}  // namespace
}  // namespace stepcast::link_level_test
