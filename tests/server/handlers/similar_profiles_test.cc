#include "server/handlers/similar_profiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/base/clock.h"
#include "server/security/method_access.h"
#include "server/store/memory_profile_store.h"

namespace stepcast::server::similar_profiles_test {
namespace {

using ::testing::HasSubstr;

class SimilarProfilesTest : public ::testing::Test {
 protected:
  void Put(const std::string& id, const std::string& model = "",
           const std::string& display_name = "") {
    const StoredProfile profile{.summary = {.id = id,
                                            .digest = "digest of " + id,
                                            .display_name = display_name,
                                            .model = model},
                                .content = "c"};
    ASSERT_TRUE(store_.Put(profile, "").ok());
  }
  absl::Status Named(const std::string& id) {
    return NameSimilar(store_.GetSummary(id).status(), id, store_);
  }
  std::string Similar(const std::string& id) {
    const ErrorDetails details = DetailsOf(Named(id));
    return details.metadata.count("similar") == 0 ? "" : details.metadata.at("similar");
  }

  FakeClock clock_;
  MemoryProfileStore store_{StoreLimits(), clock_};
};

TEST_F(SimilarProfilesTest, IdsModelsAndTextsForPeopleAreCompared) {
  Put("bert");
  Put("p-0123456789", "resnet50");
  Put("vision", "", "ResNet-50, ours");
  EXPECT_EQ(Similar("resnet50"), "profiles/p-0123456789 profiles/vision");
  EXPECT_EQ(Similar("resnet-50"), "profiles/p-0123456789 profiles/vision")
      << "punctuation is no difference";
  EXPECT_EQ(Similar("bret-large"), "");
  EXPECT_EQ(Similar("berd"), "profiles/bert");
  EXPECT_EQ(Similar("my-bert"), "profiles/bert");
  EXPECT_EQ(Similar("t"), "") << "one letter is in everything";
  EXPECT_THAT(std::string(Named("resnet50").message()),
              HasSubstr("there is no profile profiles/resnet50; like it: profiles/p-0123456789 "
                        "(model \"resnet50\"), profiles/vision (\"ResNet-50, ours\")"));
}

TEST_F(SimilarProfilesTest, TheLikestComeFirstAndThreeAreEnough) {
  for (const char* id : {"alexnet-128", "alexnet-256", "alexnet-512", "alexnat", "a"}) Put(id);
  Put("z", "alexnet");
  EXPECT_EQ(Similar("alexnet"), "profiles/z profiles/alexnet-128 profiles/alexnet-256");
}

TEST_F(SimilarProfilesTest, AModelOfTheZooIsNamedAsOne) {
  const absl::Status status = Named("inception-v3");
  EXPECT_EQ(DetailsOf(status).metadata.at("zoo_model"), "inception_v3");
  EXPECT_THAT(std::string(status.message()), HasSubstr("stepcast profile zoo inception_v3"));
  EXPECT_THAT(std::string(Named("resnet50").message()),
              HasSubstr("(stepcast profile zoo resnet50)"));
  for (const char* id : {"bert-base", "bert-base-all-reduce"}) {
    EXPECT_EQ(DetailsOf(Named(id)).metadata.at("zoo_model"), "bert_base");
    EXPECT_THAT(std::string(Named(id).message()),
                HasSubstr("(stepcast profile zoo bert_base --all-reduce)"));
  }
  EXPECT_EQ(DetailsOf(Named("transformer")).metadata.count("zoo_model"), 0U);
}

TEST_F(SimilarProfilesTest, AProfileOfTheModelIsFoundAmongAnyNumber) {
  for (int i = 0; i < kProfilesCompared + 100; ++i) Put(absl::StrCat("a", i));
  Put("zzz", "vgg19");
  EXPECT_EQ(Similar("vgg19"), "profiles/zzz");
}

TEST_F(SimilarProfilesTest, ForeignTextStaysOnOneLine) {
  Put("p-1", "", "bert\n\x1b[2J");
  EXPECT_EQ(std::string(Named("bert").message()).find_first_of("\n\x1b"), std::string::npos);
}

TEST_F(SimilarProfilesTest, OtherErrorsStayAsTheyAre) {
  EXPECT_EQ(NameSimilar(absl::OkStatus(), "x", store_), absl::OkStatus());
  const absl::Status other = absl::UnavailableError("x");
  EXPECT_EQ(NameSimilar(other, "x", store_), other);
  const absl::Status of_another = store_.GetSummary("y").status();
  EXPECT_EQ(NameSimilar(of_another, "x", store_), of_another);
}

// A caller who may name a profile may list them, so nothing is told that the caller could not read.
TEST_F(SimilarProfilesTest, OnlyWhoMayListProfilesMayNameThem) {
  for (const MethodAccess& row : MethodAccessTable()) {
    const std::string method(row.method);
    const bool names = method.find("PredictionService/") != std::string::npos ||
                       method.find("ProfileService/") != std::string::npos ||
                       method == "stepcast.v1.JobService/StartJob";
    if (names) {
      EXPECT_GE(row.access, AccessOf("stepcast.v1.ProfileService", "ListProfiles")) << method;
    }
  }
}

}  // namespace
}  // namespace stepcast::server::similar_profiles_test
