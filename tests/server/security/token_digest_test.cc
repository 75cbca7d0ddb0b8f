#include "server/security/token_digest.h"

#include <gtest/gtest.h>

#include <string>

namespace stepcast::server::token_digest_test {
namespace {

// FIPS 180-2, appendix B.1.
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(TokenDigestTest, IsSha256) {
  ASSERT_TRUE(ParseDigest(kAbc).has_value());
  EXPECT_TRUE(IsSame(*ParseDigest(kAbc), DigestOf("abc")));
  EXPECT_FALSE(IsSame(*ParseDigest(kAbc), DigestOf("abd")));
}

TEST(TokenDigestTest, EveryBitCounts) {
  const TokenDigest digest = DigestOf("abc");
  for (size_t bit = 0; bit < 8 * digest.size(); ++bit) {
    TokenDigest other = digest;
    other[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    EXPECT_FALSE(IsSame(digest, other)) << bit;
  }
}

TEST(TokenDigestTest, OnlySixtyFourHexadecimalDigitsAreOne) {
  const std::string good(kAbc);
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "0", good.substr(2) + "zz", good.substr(1) + " "}) {
    EXPECT_FALSE(ParseDigest(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace stepcast::server::token_digest_test
