#include "client/src/utf8.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/client/support/tiny_profile.h"

namespace stepcast::client::utf8_test {
namespace {

// A code point in the form that UTF-8 has for so many bytes, whether it may be used for it or not.
std::string Encoded(uint32_t point, int bytes) {
  constexpr uint8_t kLead[] = {0x00, 0x00, 0xc0, 0xe0, 0xf0};
  if (bytes == 1) return std::string(1, static_cast<char>(point));
  std::string text(static_cast<size_t>(bytes), '\0');
  for (int i = bytes - 1; i > 0; --i, point >>= 6)
    text[static_cast<size_t>(i)] = static_cast<char>(0x80 | (point & 0x3f));
  text[0] = static_cast<char>(kLead[bytes] | point);
  return text;
}

TEST(Utf8Test, TakesEveryCodePointInItsShortestFormAndNoOther) {
  for (uint32_t point = 0; point < 0x1fffff;
       point += point < 0x3000 || (point >= 0xd700 && point < 0xe100) ? 1 : 61) {
    const int shortest = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    const bool valid = point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
    ASSERT_EQ(IsUtf8("a" + Encoded(point, shortest) + "b"), valid) << point;
    for (int longer = shortest + 1; longer <= 4; ++longer)
      ASSERT_FALSE(IsUtf8(Encoded(point, longer))) << point;
  }
}

TEST(Utf8Test, RefusesWhatIsCutOff) {
  const std::string euro = "\xe2\x82\xac";
  EXPECT_TRUE(IsUtf8(euro));
  EXPECT_FALSE(IsUtf8(euro.substr(0, 2)));
  EXPECT_FALSE(IsUtf8(euro.substr(1)));
  EXPECT_FALSE(IsUtf8("\xff"));
  EXPECT_TRUE(IsUtf8(""));
}

TEST(Utf8Test, FindsTheBrokenTextOfAProfile) {
  EXPECT_EQ(FirstBrokenText(TinyProfile()), "");
  const auto broken = [](auto change) {
    Profile profile = TinyProfile();
    change(profile);
    return FirstBrokenText(profile);
  };
  EXPECT_EQ(broken([](Profile& p) { p.name = "\xff"; }), "name");
  EXPECT_EQ(broken([](Profile& p) { p.display_name = "\xff"; }), "display_name");
  EXPECT_EQ(broken([](Profile& p) { p.model = "\xff"; }), "model");
  EXPECT_EQ(broken([](Profile& p) { p.framework = "\xff"; }), "framework");
  EXPECT_EQ(broken([](Profile& p) { p.labels["k"] = "\xff"; }), "labels");
  EXPECT_EQ(broken([](Profile& p) { p.labels["\xff"] = "v"; }), "labels");
  EXPECT_EQ(broken([](Profile& p) { p.operations[3].name = "\xff"; }), "operations[3].name");
  EXPECT_EQ(broken([](Profile& p) { p.operations[1].parameter = "\xff"; }),
            "operations[1].parameter");
  EXPECT_EQ(broken([](Profile& p) { p.digest = "\xff"; }), "digest");
  EXPECT_EQ(broken([](Profile& p) { p.etag = "\xff"; }), "etag");
  EXPECT_EQ(broken([](Profile& p) { p.owner = "\xff"; }), "owner");
}

}  // namespace
}  // namespace stepcast::client::utf8_test
