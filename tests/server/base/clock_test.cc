#include "server/base/clock.h"

#include "gtest/gtest.h"

namespace stepcast::server::clock_test {
namespace {

TEST(FakeClockTest, StandsStillUntilAdvanced) {
  FakeClock clock(1000);
  const int64_t start = clock.MonotonicNs();
  EXPECT_EQ(clock.MonotonicNs(), start);
  clock.Advance(7);
  EXPECT_EQ(clock.MonotonicNs(), start + 7);
  EXPECT_EQ(clock.WallNs(), 1007);
}

TEST(FakeClockTest, SettingTheWallClockLeavesTheMonotonicOne) {
  FakeClock clock(1000);
  const int64_t start = clock.MonotonicNs();
  clock.SetWall(5);
  EXPECT_EQ(clock.WallNs(), 5);
  EXPECT_EQ(clock.MonotonicNs(), start);
}

TEST(RealClockTest, MonotonicTimeNeverGoesBack) {
  const RealClock clock;
  int64_t before = clock.MonotonicNs();
  for (int i = 0; i < 10'000; ++i) {
    const int64_t now = clock.MonotonicNs();
    ASSERT_LE(before, now);
    before = now;
  }
}

TEST(RealClockTest, WallTimeIsSinceTheUnixEpochInNanoseconds) {
  const int64_t year_2020_ns = 1'577'836'800'000'000'000;
  const int64_t year_2200_ns = 7'258'118'400'000'000'000;
  const RealClock clock;
  EXPECT_GT(clock.WallNs(), year_2020_ns);
  EXPECT_LT(clock.WallNs(), year_2200_ns);
}

}  // namespace
}  // namespace stepcast::server::clock_test
