#include "client/cli/texts/characters.h"

#include <gtest/gtest.h>

#include <sstream>

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
    if (read.size() == 1) {
      EXPECT_EQ(read[0], c) << static_cast<uint32_t>(c);
    } else {
      EXPECT_EQ(read.substr(0, 2), U"\\u") << static_cast<uint32_t>(c);
    }
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
  EXPECT_EQ(Characters("\x1b[31m\n\x7f"), U"\\x1b[31m\\x0a\\u007f");
  EXPECT_EQ(Characters("\u009b\u202e\u2066\ufffe"), U"\\u009b\\u202e\\u2066\\ufffe");
}

TEST(EscapedTest, KeepsEveryLanguageAndShowsWhatDrivesATerminal) {
  const std::string words = "Gr\u00f6\u00dfe \u4e2d\u6587 \u0627\u0644 \u05e9 \U0001f600 e\u0301";
  EXPECT_EQ(Escaped(words), words);
  EXPECT_EQ(Escaped("\x1b]0;x\a\r\n\t\x7f"), "\\x1b]0;x\\x07\\x0d\\x0a\\x09\\u007f");
  EXPECT_EQ(Escaped("\u0085\u009b\u202e\u2069\u200f\u2028"),
            "\\u0085\\u009b\\u202e\\u2069\\u200f\\u2028");
  EXPECT_EQ(Escaped("\U0001fffe"), "\\ud83f\\udffe") << "as JSON escapes it";
  EXPECT_EQ(Escaped("a\x9b"
                    "31m\xe4"),
            "a\\x9b31m\\xe4")
      << "bytes of no character";
}

TEST(EscaperTest, ATextInPartsIsAsTheWhole) {
  const std::string text =
      "\u00e4\t\u20ac\n\U0001f600\u202e\xf0\x9f"
      "a\xe2\x80";
  const std::string whole =
      "\u00e4\t\u20ac\n\U0001f600\\u202e\\xf0\\x9f"
      "a\\xe2\\x80";
  for (size_t size = 1; size <= text.size(); ++size) {
    Escaper escaper;
    std::string escaped;
    for (size_t at = 0; at < text.size(); at += size)
      escaped += escaper.Next(std::string_view(text).substr(at, size));
    EXPECT_EQ(escaped + escaper.Rest(), whole) << size;
  }
}

TEST(ShortenedTest, SaysThatSomethingIsMissing) {
  EXPECT_EQ(Shortened(U"abc", 3), U"abc");
  EXPECT_EQ(Shortened(U"abcd", 3), U"ab\u2026");
  EXPECT_EQ(Shortened(U"abcd", 0), U"");
}

TEST(InQuotesTest, RepeatsNoMoreThanALine) {
  EXPECT_EQ(InQuotes("1 \u00b5s\x1b"), "\"1 \u00b5s\\x1b\"");
  EXPECT_EQ(InQuotes(std::string(60, 'x')), "\"" + std::string(60, 'x') + "\"");
  EXPECT_EQ(InQuotes(std::string(1'000'000, 'x')), "\"" + std::string(59, 'x') + "\u2026\"");
}

TEST(PrintableStreamTest, NothingThatDrivesATerminalPasses) {
  std::ostringstream sink;
  {
    PrintableStream out(sink);
    out << "a\x1b[2J" << 'b' << '\xc2' << '\x9b' << 12 << "\tc\n\r\xe4\xb8"
        << "\xad\u202e" << std::flush;
    EXPECT_EQ(sink.str(), "a\\x1b[2Jb\\u009b12\tc\n\\x0d\u4e2d\\u202e");
    out << "\xf0\x9f";
  }
  EXPECT_EQ(sink.str(), "a\\x1b[2Jb\\u009b12\tc\n\\x0d\u4e2d\\u202e\\xf0\\x9f");
}

TEST(PrintableStreamTest, AFailureBelowIsAFailure) {
  std::ostringstream sink;
  PrintableStream out(sink);
  sink.setstate(std::ios::badbit);
  out << "a" << std::flush;
  EXPECT_FALSE(out.good());
}

}  // namespace
}  // namespace stepcast::client::characters_test
