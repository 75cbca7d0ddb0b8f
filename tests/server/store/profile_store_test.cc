#include "server/store/profile_store.h"

#include "gtest/gtest.h"

namespace stepcast::server::profile_store_test {
namespace {

const ProfileSummary kSummary = {
    .id = "p", .model = "resnet50", .labels = {{"cluster", "a"}, {"note", ""}}};

TEST(ProfileFilterTest, AnEmptyFilterTakesAll) { EXPECT_TRUE(Matches({}, kSummary)); }

TEST(ProfileFilterTest, TheModelMustBeEqual) {
  EXPECT_TRUE(Matches({.model = "resnet50"}, kSummary));
  EXPECT_FALSE(Matches({.model = "resnet"}, kSummary));
  EXPECT_FALSE(Matches({.model = ""}, kSummary));
}

TEST(ProfileFilterTest, ALabelMustHaveTheValue) {
  EXPECT_TRUE(Matches({.labels = {{"cluster", "a"}}}, kSummary));
  EXPECT_FALSE(Matches({.labels = {{"cluster", "b"}}}, kSummary));
  EXPECT_FALSE(Matches({.labels = {{"absent", ""}}}, kSummary));
}

TEST(ProfileFilterTest, APresentLabelMayHaveAnyValue) {
  EXPECT_TRUE(Matches({.present_labels = {"cluster", "note"}}, kSummary));
  EXPECT_FALSE(Matches({.present_labels = {"absent"}}, kSummary));
}

TEST(ProfileFilterTest, EveryTermMustHold) {
  EXPECT_TRUE(Matches(
      {.model = "resnet50", .labels = {{"cluster", "a"}, {"note", ""}}, .present_labels = {"note"}},
      kSummary));
  EXPECT_FALSE(
      Matches({.model = "resnet50", .labels = {{"cluster", "a"}, {"note", "x"}}}, kSummary));
  EXPECT_FALSE(Matches(
      {.model = "resnet50", .labels = {{"cluster", "a"}}, .present_labels = {"note", "absent"}},
      kSummary));
}

}  // namespace
}  // namespace stepcast::server::profile_store_test
