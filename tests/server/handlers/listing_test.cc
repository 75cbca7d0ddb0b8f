#include "server/handlers/listing.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/random.h"

namespace stepcast::server::listing_test {
namespace {

TEST(FilterParserTest, NothingTakesAll) {
  for (const std::string text : {"", "  \t "}) {
    const absl::StatusOr<ProfileFilter> filter = ParseProfileFilter(text);
    ASSERT_TRUE(filter.ok()) << filter.status();
    EXPECT_FALSE(filter->model.has_value());
    EXPECT_TRUE(filter->labels.empty());
    EXPECT_TRUE(filter->present_labels.empty());
  }
}

TEST(FilterParserTest, EveryKindOfTermIsRead) {
  const absl::StatusOr<ProfileFilter> filter = ParseProfileFilter(
      R"(model = "resnet50" AND labels.team="a b" AND labels:gpu AND labels."a.b/c" = x.y)");
  ASSERT_TRUE(filter.ok()) << filter.status();
  EXPECT_EQ(filter->model, "resnet50");
  EXPECT_EQ(filter->labels,
            (std::map<std::string, std::string>{{"team", "a b"}, {"a.b/c", "x.y"}}));
  EXPECT_EQ(filter->present_labels, std::vector<std::string>{"gpu"});
}

TEST(FilterParserTest, StringsMayHoldQuotesAndBackslashes) {
  EXPECT_EQ(ParseProfileFilter(R"(model = "a\"b\\c")")->model, "a\"b\\c");
}

TEST(FilterParserTest, OneThingTwiceIsOnce) {
  EXPECT_TRUE(ParseProfileFilter(R"(model = a AND model = "a")").ok());
  EXPECT_FALSE(ParseProfileFilter("model = a AND model = b").ok());
  EXPECT_FALSE(ParseProfileFilter("labels.k = a AND labels.k = b").ok());
}

TEST(FilterParserTest, WhatIsNoFilterIsRefusedAtItsField) {
  for (const std::string text :
       {"x", "model", "model =", "model = ", "model = \"a", "models = a", "model = a AND",
        "model = a OR model = b", "model = a b", "labels", "labels.", "labels.k",
        "labels.k =", "labels:", "AND model = a", "model == a", "model = \"a\\", "labels k = v"}) {
    const absl::Status status = ParseProfileFilter(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(DetailsOf(status).faults.at(0).field, "filter") << text;
  }
}

TEST(FilterParserTest, AFilterHasALimit) {
  EXPECT_FALSE(ParseProfileFilter("model = " + std::string(kMaxFilterBytes, 'a')).ok());
}

TEST(FilterParserTest, AnyBytesAreReadOrRefused) {
  const std::vector<std::string> pieces{
      "model", "labels", ".", ":", "=", "\"", "\\", " ", "AND", "a", "\xFF", std::string(1, '\0')};
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random({seed});
    std::string text;
    for (uint64_t i = random.Below(12); i > 0; --i) text += pieces[random.Below(pieces.size())];
    const absl::StatusOr<ProfileFilter> filter = ParseProfileFilter(text);
    if (filter.ok()) continue;
    EXPECT_EQ(DetailsOf(filter.status()).faults.at(0).field, "filter") << "seed " << seed;
  }
}

TEST(PageTokenTest, ATokenLeadsBackToItsPlace) {
  EXPECT_EQ(*ReadPageToken(MakePageToken("filter", "some-id"), "filter"), "some-id");
  EXPECT_EQ(*ReadPageToken("", "filter"), "");
}

TEST(PageTokenTest, ATokenIsBoundToItsFilter) {
  const absl::Status status = ReadPageToken(MakePageToken("filter", "some-id"), "another").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(status).faults.at(0).field, "page_token");
}

TEST(PageTokenTest, InventedTokensAreRefused) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random({seed});
    std::string token(1 + random.Below(60), ' ');
    for (char& c : token) c = static_cast<char>(random.Below(256));
    EXPECT_FALSE(ReadPageToken(token, "").ok()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace stepcast::server::listing_test
