#include "server/convert/utf8.h"

#include <gtest/gtest.h>

#include "tests/server/support/random_profile.h"

namespace stepcast::server::utf8_test {
namespace {

TEST(Utf8Test, WholeCharactersAreKept) {
  for (const std::string text :
       {"plain", "gr\xC3\xBC\xC3\x9F", "\xE2\x82\xAC \xF0\x9F\x98\x80", ""}) {
    EXPECT_TRUE(IsUtf8(text));
    EXPECT_EQ(ToUtf8(text, 100), text);
  }
}

TEST(Utf8Test, BytesThatArePartOfNoneAreReplaced) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"a\xFFz", "a?z"},
      {"cut \xE2\x82", "cut ??"},
      {"overlong \xC0\xAF", "overlong ??"},
      {"overlong \xE0\x80\x80", "overlong ???"},
      {"surrogate \xED\xA0\x80", "surrogate ???"},
      {"beyond \xF4\x90\x80\x80", "beyond ????"},
      {"alone \x80", "alone ?"}};
  for (const auto& [text, expected] : cases) {
    EXPECT_FALSE(IsUtf8(text)) << expected;
    EXPECT_EQ(ToUtf8(text, 100), expected);
  }
}

TEST(Utf8Test, NeverCutWithinACharacter) {
  EXPECT_EQ(ToUtf8("aa\xC3\xBC", 3), "aa");
  EXPECT_EQ(ToUtf8("aa\xC3\xBC", 4), "aa\xC3\xBC");
}

TEST(Utf8Test, BrokenTextOfAProfileIsFoundWhereverItStands) {
  ProfileDraft draft = SmallProfile();
  EXPECT_TRUE(FindBrokenText(draft).empty());
  draft.display_name = draft.model = draft.framework = "\xFF";
  draft.labels["\xFF"] = "value";
  draft.operations[1].name = "\xFF";
  draft.operations[0].parameter = "\xFF";
  std::vector<std::string> fields;
  for (const Fault& fault : FindBrokenText(draft)) fields.push_back(fault.field);
  EXPECT_EQ(fields, (std::vector<std::string>{"display_name", "model", "framework", "labels",
                                              "operations[0].parameter", "operations[1].name"}));
}

}  // namespace
}  // namespace stepcast::server::utf8_test
