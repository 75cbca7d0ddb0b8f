#include "client/cli/characters.h"

#include <gtest/gtest.h>

namespace stepcast::client::characters_test {
namespace {

TEST(CharactersTest, TakesCharactersOfEveryLength) {
  EXPECT_EQ(Characters("a\u00e4\u20ac\U0001f600"), U"a\u00e4\u20ac\U0001f600");
  EXPECT_EQ(Utf8(U"a\u00e4\u20ac\U0001f600"), "a\u00e4\u20ac\U0001f600");
}

TEST(CharactersTest, EveryCharacterComesBack) {
  for (char32_t c = 0x20; c <= 0x10ffff; c += c < 0x3000 ? 1 : 61) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    const std::u32string read = Characters(Utf8(std::u32string(1, c)));
    ASSERT_EQ(read.size(), 1) << static_cast<uint32_t>(c);
    EXPECT_TRUE(read[0] == c || read[0] == U' ') << static_cast<uint32_t>(c);
  }
}

TEST(CharactersTest, WhatIsNoCharacterIsReplaced) {
  EXPECT_EQ(Characters("a\xff"
                       "b"),
            U"a\ufffdb");
  EXPECT_EQ(Characters("\xe2\x82"), U"\ufffd\ufffd") << "cut short";
  EXPECT_EQ(Characters("\xc0\xaf"), U"\ufffd\ufffd") << "a longer form than needed";
  EXPECT_EQ(Characters("\xe0\x80\xaf"), U"\ufffd\ufffd\ufffd") << "a longer form than needed";
  EXPECT_EQ(Characters("\xed\xa0\x80"), U"\ufffd\ufffd\ufffd") << "half of a pair";
  EXPECT_EQ(Characters("\xf4\x90\x80\x80"), U"\ufffd\ufffd\ufffd\ufffd") << "beyond the last";
}

TEST(CharactersTest, NothingDrivesATerminalOrBreaksXml) {
  EXPECT_EQ(Characters("\x1b[31m\n\x7f"), U" [31m  ");
  EXPECT_EQ(Characters("\u009b\u202e\u2066\ufffe"), U"    ");
}

TEST(ShortenedTest, SaysThatSomethingIsMissing) {
  EXPECT_EQ(Shortened(U"abc", 3), U"abc");
  EXPECT_EQ(Shortened(U"abcd", 3), U"ab\u2026");
  EXPECT_EQ(Shortened(U"abcd", 0), U"");
}

TEST(InQuotesTest, RepeatsNoMoreThanALine) {
  EXPECT_EQ(InQuotes("1 \u00b5s\x1b"), "\"1 \u00b5s \"");
  EXPECT_EQ(InQuotes(std::string(60, 'x')), "\"" + std::string(60, 'x') + "\"");
  EXPECT_EQ(InQuotes(std::string(1'000'000, 'x')), "\"" + std::string(59, 'x') + "\u2026\"");
}

}  // namespace
}  // namespace stepcast::client::characters_test
