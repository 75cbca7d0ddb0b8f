#include "core/base/duration_text.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace stepcast::duration_text_test {
namespace {

TEST(DurationTextTest, HasTheUnitThatFits) {
  EXPECT_EQ(DurationText(0), "0 ns");
  EXPECT_EQ(DurationText(999), "999 ns");
  EXPECT_EQ(DurationText(-3), "-3 ns");
  EXPECT_EQ(DurationText(1500), "1.5 us");
  EXPECT_EQ(DurationText(690'093'783), "690.1 ms");
  EXPECT_EQ(DurationText(-2'500'000'000), "-2.5 s");
  EXPECT_EQ(DurationText(172'800'000'000'000), "172800 s");
  EXPECT_EQ(DurationText(INT64_MAX), "9223372037 s");
  EXPECT_EQ(DurationText(INT64_MIN), "-9223372037 s");
}

TEST(ClockTextTest, IsInSecondsExactly) {
  EXPECT_EQ(ClockText(7'500'012'345), "7.500012345 s");
  EXPECT_EQ(ClockText(-1'000), "-0.000001000 s");
}

}  // namespace
}  // namespace stepcast::duration_text_test
