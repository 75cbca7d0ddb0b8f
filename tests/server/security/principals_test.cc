#include "server/security/principals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server::principals_test {
namespace {

TEST(MethodAccessTest, EveryRowIsFoundByItsServiceAndMethod) {
  const auto& table = MethodAccessTable();
  EXPECT_TRUE(std::is_sorted(table.begin(), table.end(),
                             [](const auto& a, const auto& b) { return a.method < b.method; }));
  for (const MethodAccess& row : table) {
    const size_t slash = row.method.find('/');
    EXPECT_EQ(AccessOf(row.method.substr(0, slash), row.method.substr(slash + 1)), row.access)
        << row.method;
  }
}

TEST(MethodAccessTest, WhatIsNotThereIsForKnownCallersOnly) {
  for (const auto& [service, method] : {std::pair{"", ""},
                                        {"a", "b"},
                                        {"grpc.health.v1.Health", ""},
                                        {"grpc.health.v1.Health", "Checks"},
                                        {"grpc.health.v1", "Health/Check"},
                                        {"zz", "zz"},
                                        {"grpc.health.v1.Health/Check", ""}}) {
    EXPECT_EQ(AccessOf(service, method), Access::kKnown) << service << " " << method;
  }
}

TEST(MethodAccessTest, OnlyHealthIsForAnybody) {
  for (const MethodAccess& row : MethodAccessTable()) {
    if (row.access == Access::kAnybody) {
      EXPECT_EQ(row.method.substr(0, row.method.find('/')), "grpc.health.v1.Health");
    }
  }
}

TEST(MethodAccessTest, WhatChangesSomethingNeedsMoreThanAReader) {
  for (const char* const verb :
       {"Create", "Upload", "Import", "Delete", "Start", "Cancel", "Set"}) {
    for (const MethodAccess& row : MethodAccessTable()) {
      const std::string_view name = row.method.substr(row.method.find('/') + 1);
      if (name.rfind(verb, 0) == 0) {
        EXPECT_GE(RoleFor(row.access), Role::kWriter) << row.method;
      }
    }
  }
}

using ::testing::HasSubstr;

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

constexpr char kToken[] = "correct horse battery staple";

Principals Parsed(const std::string& text) {
  absl::StatusOr<Principals> principals = Principals::Parse(text);
  EXPECT_TRUE(principals.ok()) << principals.status();
  return principals.ok() ? *std::move(principals) : Principals();
}

TEST(PrincipalsTest, ATokenAndItsDigestNameTheirCaller) {
  const Principals principals =
      Parsed(absl::StrCat("- {name: a, role: writer, token: ", kToken,
                          "}\n- {name: b, role: reader, sha256: ", kAbc, "}\n"));
  ASSERT_NE(principals.ByToken(kToken), nullptr);
  EXPECT_EQ(principals.ByToken(kToken)->name, "a");
  EXPECT_EQ(principals.ByToken(kToken)->role, Role::kWriter);
  ASSERT_NE(principals.ByToken("abc"), nullptr);
  EXPECT_EQ(principals.ByToken("abc")->name, "b");
  EXPECT_EQ(principals.ByToken(kAbc), nullptr);
  EXPECT_EQ(principals.ByToken(""), nullptr);
}

TEST(PrincipalsTest, ACertificatesNameIsMatchedAsAWhole) {
  const Principals principals =
      Parsed("- name: ci\n  role: admin\n  certificate: ci.example.com\n");
  ASSERT_NE(principals.ByCertificateName("ci.example.com"), nullptr);
  EXPECT_EQ(principals.ByCertificateName("ci.example.com")->role, Role::kAdmin);
  EXPECT_EQ(principals.ByCertificateName("ci.example.co"), nullptr);
  EXPECT_EQ(principals.ByCertificateName("example.com"), nullptr);
  EXPECT_EQ(principals.ByToken("ci.example.com"), nullptr);
}

TEST(PrincipalsTest, ATokenCanBeReplacedWhileTheOldOneIsGood) {
  const Principals principals = Parsed(
      "- {name: a, role: reader, token: 0123456789abcdef-old}\n- {name: a, role: reader, token: "
      "0123456789abcdef-new}\n");
  EXPECT_EQ(principals.ByToken("0123456789abcdef-old")->name, "a");
  EXPECT_EQ(principals.ByToken("0123456789abcdef-new")->name, "a");
}

TEST(PrincipalsTest, WhatIsWrongIsNamedWithItsLineAndNoSecret) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"- {name: a, role: king, token: 0123456789abcdef}", "role must be"},
      {"- {name: 'a b', role: reader, token: 0123456789abcdef}", "name must be"},
      {"- {role: reader, token: 0123456789abcdef}", "name"},
      {"- {name: a, role: reader}", "one of sha256"},
      {"- {name: a, role: reader, token: 0123456789abcdef, certificate: b}", "one of sha256"},
      {"- {name: a, role: reader, token: 0123456789abcde}", "16"},
      {"- {name: a, role: reader, sha256: 0123456789abcdef}", "64"},
      {"- {name: a, role: reader, token: [0123456789abcdef]}", "token"},
      {"- {name: a, role: reader, tokens: 0123456789abcdef}", "none of name"},
      // A colon that is missing, one too many, a tag and an alias: what was meant for a token
      // stands elsewhere.
      {"- {name: a, role: reader, token 0123456789abcdef}", "none of name"},
      {"- {name: a, role: reader, !token: 0123456789abcdef}", "none of name"},
      {"- {name: a, role: 0123456789abcdef, token: fedcba9876543210}", "role must be"},
      {"- {name: 'token: 0123456789abcdef', role: reader}", "name must be"},
      {"- {name: a, role: reader, token: *0123456789abcdef}", "anchor"},
      {"- {name: a, role: reader, token: 0123456789abcdef}\n- {name: b, role: reader, token: "
       "0123456789abcdef}",
       "same token"},
      {"- {name: a, role: reader, token: 0123456789abcdef}\n- {name: a, role: admin, token: "
       "fedcba9876543210}",
       "another role"},
      {"- {name: a, role: reader, certificate: c}\n- {name: b, role: admin, certificate: c}",
       "no other entry"},
      {"- a", "map"},
      {"a: b", "list"},
      {"- {", "flow"},
  };
  for (const auto& [text, part] : cases) {
    const absl::Status status = Principals::Parse(text).status();
    ASSERT_EQ(DetailsOf(status).reason, "TOKENS_INVALID") << text;
    EXPECT_THAT(DetailsOf(status).faults.front().field, ::testing::AnyOf("1", "2")) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(part)) << text;
    EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr("0123456789abcde")))
        << text;
  }
}

TEST(PrincipalsTest, AFileThatNamesNobodyIsRefused) {
  for (const char* text :
       {"", "\n", "# - {name: a, role: reader}\n", "---\n", "~", "[]", "[ ]\n"}) {
    const absl::Status status = Principals::Parse(text).status();
    EXPECT_EQ(DetailsOf(status).reason, "TOKENS_INVALID") << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("names nobody")) << text;
  }
}

TEST(PrincipalsTest, TooManyAreRefused) {
  std::string text;
  for (size_t i = 0; i <= Principals::kMaxEntries; ++i)
    absl::StrAppend(&text, "- {name: a, role: reader, token: 0123456789abcdef", i, "}\n");
  EXPECT_THAT(std::string(Principals::Parse(text).status().message()), HasSubstr("at most 1000"));
}

}  // namespace
}  // namespace stepcast::server::principals_test
