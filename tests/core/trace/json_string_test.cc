#include "core/trace/json_string.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace stepcast::json_string_test {
namespace {

std::string Escaped(std::string_view text) {
  std::string json;
  AppendJsonString(text, json);
  return json;
}

std::string ReadBack(std::string_view text) {
  return nlohmann::json::parse(Escaped(text)).get<std::string>();
}

TEST(JsonStringTest, WhatMayNotStandInAStringIsEscaped) {
  EXPECT_EQ(Escaped(""), R"("")");
  EXPECT_EQ(Escaped("recv/conv1:0"), R"("recv/conv1:0")");
  EXPECT_EQ(Escaped("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(Escaped(std::string("\0\n\x1F\x7F", 4)), R"("\u0000\u000a\u001f\u007f")");
}

TEST(JsonStringTest, EveryCharacterComesBack) {
  std::string all;
  for (uint32_t c = 0; c < 0x80; ++c) all += static_cast<char>(c);
  // The first and last of each length, and around the surrogates.
  for (const char* text : {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    all += text;
  }
  EXPECT_EQ(ReadBack(all), all);
}

TEST(JsonStringTest, WhatIsNoUtf8IsReplacedByteByByte) {
  const std::string bad = "\xEF\xBF\xBD";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\x80z", "a" + bad + "z"},        // no lead
      {"\xC0\x80", bad + bad},            // overlong
      {"\xE0\x9F\xBF", bad + bad + bad},  // overlong
      {"\xF0\x8F\xBF\xBF", bad + bad + bad + bad},
      {"\xED\xA0\x80", bad + bad + bad},            // a surrogate
      {"\xF4\x90\x80\x80", bad + bad + bad + bad},  // past the last
      {"\xF5\x80\x80\x80", bad + bad + bad + bad},
      {"\xE2\x82", bad + bad},  // cut off
      {"\xE2\x82z", bad + bad + "z"},
      {"\xFF", bad},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(ReadBack(text), expected) << testing::PrintToString(text);
}

TEST(JsonStringTest, AnyBytesGiveValidJson) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random({seed});
    std::string text;
    for (uint64_t left = random.Below(12); left > 0; --left) {
      // Mostly what could begin or go on a sequence.
      text +=
          static_cast<char>(random.Below(4) == 0 ? random.Below(256) : 0x80 + random.Below(128));
    }
    EXPECT_NO_THROW(ReadBack(text)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace stepcast::json_string_test
