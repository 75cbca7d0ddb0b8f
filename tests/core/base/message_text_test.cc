#include "core/base/message_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace stepcast::message_text_test {
namespace {

TEST(NumberTextTest, HasFourDigitsAndAllBeforeThePoint) {
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(0.071364), "0.07136");
  EXPECT_EQ(NumberText(680.54), "680.5");
  EXPECT_EQ(NumberText(180), "180");
  EXPECT_EQ(NumberText(9999.4), "9999");
  EXPECT_EQ(NumberText(9999.6), "10000");
  EXPECT_EQ(NumberText(13409.2), "13409");
  EXPECT_EQ(NumberText(-1234567.4), "-1234567");
  EXPECT_EQ(NumberText(1.5e-7), "1.5e-07");
  EXPECT_EQ(NumberText(1e300), "1e+300");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::infinity()), "inf");
}

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

TEST(QuotedTest, PlainTextStandsInQuotes) {
  EXPECT_EQ(Quoted("recv/conv1"), "\"recv/conv1\"");
  EXPECT_EQ(Quoted(""), "\"\"");
}

TEST(QuotedTest, WhatIsNotPrintableAsciiIsEscaped) {
  EXPECT_EQ(Quoted(std::string("a\"\n\0\xff\\", 6)), R"("a\"\n\x00\xff\\")");
  for (const char c : Quoted("\xc3\xa9\x01\x7f")) EXPECT_TRUE(c >= ' ' && c <= '~');
}

TEST(QuotedTest, LongTextIsCutWithAnEllipsis) {
  EXPECT_EQ(Quoted(std::string(64, 'x')), "\"" + std::string(64, 'x') + "\"");
  EXPECT_EQ(Quoted(std::string(65, 'x')), "\"" + std::string(64, 'x') + "...\"");
  EXPECT_LE(Quoted(std::string(1 << 20, '\xff')).size(), 300u);
}

}  // namespace
}  // namespace stepcast::message_text_test
