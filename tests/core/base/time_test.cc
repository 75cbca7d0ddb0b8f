#include "core/base/time.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "core/base/random.h"

namespace stepcast::time_test {
namespace {

TEST(TimeTest, UpToTenWorkersShareANanosecondWithoutRounding) {
  for (int64_t workers = 1; workers <= 10; ++workers)
    EXPECT_EQ(kTicksPerNanosecond % workers, 0) << workers;
}

TEST(TimeTest, UnitsAreMultiplesOfEachOther) {
  EXPECT_EQ(Nanoseconds(1'000'000), Milliseconds(1));
  EXPECT_EQ(Nanoseconds(1'000), Microseconds(1));
  EXPECT_EQ(ToNanoseconds(Milliseconds(7)), 7'000'000);
  EXPECT_DOUBLE_EQ(ToSeconds(Milliseconds(1500)), 1.5);
}

TEST(TimeTest, ToNanosecondsRoundsToTheNearestHalvesUpOnBothSidesOfZero) {
  EXPECT_EQ(ToNanoseconds(Span{1259}), 0);
  EXPECT_EQ(ToNanoseconds(Span{1260}), 1);
  EXPECT_EQ(ToNanoseconds(Span{2520 + 1259}), 1);
  EXPECT_EQ(ToNanoseconds(Span{-1260}), 0);
  EXPECT_EQ(ToNanoseconds(Span{-1261}), -1);
  EXPECT_EQ(ToNanoseconds(Span{-3780}), -1);
  EXPECT_EQ(ToNanoseconds(Span{-3781}), -2);
}

TEST(TimeTest, ToNanosecondsUndoesNanoseconds) {
  Random random({1});
  for (int i = 0; i < 10'000; ++i) {
    const auto ns = static_cast<int64_t>(random.Below(1'800'000'000'000'000));
    ASSERT_EQ(ToNanoseconds(Nanoseconds(ns)), ns);
    ASSERT_EQ(ToNanoseconds(Nanoseconds(-ns)), -ns);
  }
}

TEST(TimeTest, TheEndOfTimeIsOverADayAwayAndLeavesRoomForOneMoreAddition) {
  EXPECT_GT(kEndOfTime - Instant{}, Milliseconds(86'400'000));
  EXPECT_LE(kEndOfTime.ticks, std::numeric_limits<int64_t>::max() / 2 + 1);
}

}  // namespace
}  // namespace stepcast::time_test
