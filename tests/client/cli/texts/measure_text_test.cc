#include "client/cli/texts/measure_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace stepcast::client::measure_text_test {
namespace {

TEST(NumberTextTest, HasFourSignificantDigits) {
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(0.012346), "0.01235");
  EXPECT_EQ(NumberText(1.23456), "1.235");
  EXPECT_EQ(NumberText(9.9996), "10.00");
  EXPECT_EQ(NumberText(99.9999), "100.0");
  EXPECT_EQ(NumberText(123.456), "123.5");
  EXPECT_EQ(NumberText(12345.6), "12346");
  EXPECT_EQ(NumberText(125e6), "125000000");
  EXPECT_EQ(NumberText(-2.5), "-2.500");
}

TEST(NumberTextTest, TakesWhateverThereIs) {
  EXPECT_EQ(NumberText(1e-300), "0.000000000000");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::max()).size(), 309);
  EXPECT_EQ(NumberText(std::numeric_limits<double>::infinity()), "inf");
}

TEST(PercentTextTest, HasOneDecimal) { EXPECT_EQ(PercentText(0.9784), "97.8%"); }

TEST(DurationTextTest, ChoosesItsUnit) {
  EXPECT_EQ(DurationText(std::chrono::nanoseconds(812)), "812.0 ns");
  EXPECT_EQ(DurationText(std::chrono::nanoseconds(81'350'000)), "81.35 ms");
  EXPECT_EQ(DurationText(std::chrono::nanoseconds(1'500)), "1.500 us");
  EXPECT_EQ(DurationText(std::chrono::seconds(90)), "90.00 s");
}

TEST(BytesTextTest, ChoosesItsUnit) {
  EXPECT_EQ(BytesText(64), "64 B");
  EXPECT_EQ(BytesText(1536), "1.500 KiB");
  EXPECT_EQ(BytesText(102'118'144), "97.39 MiB");
  EXPECT_EQ(BytesText(std::numeric_limits<int64_t>::max()), "8.000 EiB");
}

}  // namespace
}  // namespace stepcast::client::measure_text_test
