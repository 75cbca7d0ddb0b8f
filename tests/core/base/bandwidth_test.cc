#include "core/base/bandwidth.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/random.h"

namespace stepcast::bandwidth_test {
namespace {

TEST(BandwidthTest, TimeIsBytesOverBandwidth) {
  EXPECT_EQ(Bandwidth(1e9).TimeFor(1), Nanoseconds(1));
  EXPECT_EQ(Bandwidth(125e6).TimeFor(1'000'000), Milliseconds(8));
  EXPECT_EQ(Bandwidth(1).TimeFor(1), Milliseconds(1000));
}

TEST(BandwidthTest, TimeIsRoundedToTheNearestTickHalvesUp) {
  // 2520e9 ticks a second: 5040e9 bytes a second are half a tick a byte.
  EXPECT_EQ(Bandwidth(5040e9).TimeFor(3).ticks, 2);
  EXPECT_EQ(Bandwidth(5040e9).TimeFor(5).ticks, 3);
  EXPECT_EQ(Bandwidth(7560e9).TimeFor(4).ticks, 1);
  EXPECT_EQ(Bandwidth(7560e9).TimeFor(5).ticks, 2);
}

TEST(BandwidthTest, NothingTakesNoTimeAndNothingPassesTheEndOfTime) {
  EXPECT_EQ(Bandwidth(Bandwidth::kMaxBytesPerSecond).TimeFor(1).ticks, 1);
  EXPECT_EQ(
      Bandwidth(Bandwidth::kMinBytesPerSecond).TimeFor(std::numeric_limits<int64_t>::max()).ticks,
      kEndOfTime.ticks);
  EXPECT_EQ(Bandwidth(1).TimeFor(int64_t{1} << 44).ticks, kEndOfTime.ticks);
}

TEST(BandwidthTest, TimeAgreesWithLongDoublesToATick) {
  for (uint64_t seed = 0; seed < 10'000; ++seed) {
    Random random({seed});
    const Bandwidth bandwidth(std::exp2(random.Unit() * 49));
    const auto bytes = static_cast<int64_t>(1 + random.Below(1'000'000));
    const long double ticks = static_cast<long double>(bytes) * 2520e9L /
                              static_cast<long double>(bandwidth.bytes_per_second());
    if (ticks > 4e18L) continue;
    const auto expected = std::max(1.0L, ticks);
    ASSERT_NEAR(static_cast<double>(bandwidth.TimeFor(bytes).ticks - expected), 0, 0.5 + 1e-3)
        << "seed " << seed;
  }
}

TEST(BandwidthTest, AValueIsHeldToA1024thOfAByte) {
  EXPECT_EQ(Bandwidth(117.7e6).bytes_per_second(), 117.7e6);
  EXPECT_EQ(Bandwidth(1.0 + 0.4 / 1024), Bandwidth(1));
  EXPECT_NE(Bandwidth(1.0 + 0.6 / 1024), Bandwidth(1));
  EXPECT_LT(Bandwidth(1), Bandwidth(2));
}

TEST(BandwidthTest, RatioIsRoundedToTheNearestUnitAndAtLeastOne) {
  EXPECT_EQ(Bandwidth(3e6).RatioTo(Bandwidth(2e6), 1000), 1500);
  EXPECT_EQ(Bandwidth(1).RatioTo(Bandwidth(3), 1000), 333);
  EXPECT_EQ(Bandwidth(2).RatioTo(Bandwidth(3), 1000), 667);
  EXPECT_EQ(Bandwidth(1).RatioTo(Bandwidth(1e15), 1000), 1);
  EXPECT_EQ(Bandwidth(1e15).RatioTo(Bandwidth(1), std::numeric_limits<int64_t>::max()),
            kEndOfTime.ticks);
}

}  // namespace
}  // namespace stepcast::bandwidth_test
