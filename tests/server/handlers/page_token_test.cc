#include "server/handlers/page_token.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/random.h"

namespace stepcast::server::page_token_test {
namespace {

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
}  // namespace stepcast::server::page_token_test
