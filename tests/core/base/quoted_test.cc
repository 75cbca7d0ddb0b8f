#include "core/base/quoted.h"

#include <gtest/gtest.h>

#include <string>

namespace stepcast::quoted_test {
namespace {

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
}  // namespace stepcast::quoted_test
