#include "core/trace/trace_time.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/base/random.h"

namespace stepcast::trace_time_test {
namespace {

std::string Text(int64_t picoseconds) {
  std::string json;
  AppendMicroseconds(picoseconds, json);
  return json;
}

TEST(TraceTimeTest, WholeNanosecondsAreExact) {
  for (const int64_t ns : {int64_t{0}, int64_t{1}, int64_t{999}, int64_t{86'400'000'000'000}})
    EXPECT_EQ(ToPicoseconds(Instant{} + Nanoseconds(ns)), ns * 1000);
}

TEST(TraceTimeTest, AnInstantIsRoundedToTheNearestPicosecond) {
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    Random random({seed});
    const auto ticks = static_cast<int64_t>(
        random.Below(static_cast<uint64_t>(kEndOfTime.ticks) >> random.Below(62)));
    // |picoseconds - ticks x 25/63| <= 1/2, in exact integers.
    const __int128 off = static_cast<__int128>(ToPicoseconds(Instant{ticks})) * 63 -
                         static_cast<__int128>(ticks) * 25;
    EXPECT_TRUE(2 * off <= 63 && 2 * off >= -63) << "seed " << seed;
  }
}

TEST(TraceTimeTest, MicrosecondsHaveNoDigitTooManyOrTooFew) {
  EXPECT_EQ(Text(0), "0");
  EXPECT_EQ(Text(1), "0.000001");
  EXPECT_EQ(Text(999'999), "0.999999");
  EXPECT_EQ(Text(1'000'000), "1");
  EXPECT_EQ(Text(12'500'000), "12.5");
  EXPECT_EQ(Text(1'000'100), "1.0001");
  EXPECT_EQ(Text(ToPicoseconds(kEndOfTime)), "1830034134296.582502");
}

}  // namespace
}  // namespace stepcast::trace_time_test
