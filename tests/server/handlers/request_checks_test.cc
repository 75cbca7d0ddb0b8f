#include "server/handlers/request_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/base/clock.h"
#include "server/security/principals.h"
#include "server/store/memory_stores.h"

namespace stepcast::server::request_checks_test {
namespace {

TEST(ProfileNameTest, IdsFollowTheRule) {
  for (const char* const id : {"a", "a1", "p-0123", "resnet50-v1", "a--b"})
    EXPECT_TRUE(IsProfileId(id)) << id;
  for (const char* const id : {"", "1a", "-a", "a-", "A", "a_b", "a.b", "a/b", "\xC3\xA4"})
    EXPECT_FALSE(IsProfileId(id)) << id;
  EXPECT_TRUE(IsProfileId(std::string(63, 'a')));
  EXPECT_FALSE(IsProfileId(std::string(64, 'a')));
  EXPECT_FALSE(IsProfileId(std::string("a\0b", 3)));
}

TEST(ProfileNameTest, ADerivedIdIsAnId) {
  const std::string id = DerivedProfileId(std::string(64, '0'));
  EXPECT_TRUE(IsProfileId(id));
  EXPECT_EQ(id, "p-00000000000000000000");
}

TEST(ProfileNameTest, ANameHoldsItsId) {
  EXPECT_EQ(*ProfileIdOf(ProfileName("abc"), "name"), "abc");
  for (const std::string name :
       {"", "abc", "profiles/", "profiles/A", "profiles/a/b", "/profiles/a", "Profiles/a"}) {
    const absl::Status status = ProfileIdOf(name, "the_field").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(DetailsOf(status).faults.at(0).field, "the_field") << name;
  }
}

TEST(ProfileNameTest, EveryFaultOfAPlacementIsFound) {
  const std::vector<Fault> faults = FaultsOf({.profile_id = "A", .request_id = "B"}, "header.");
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].field, "header.profile_id");
  EXPECT_EQ(faults[1].field, "header.request_id");
  EXPECT_TRUE(FaultsOf({}, "").empty());
}

TEST(ProfileNameTest, WhatIsReplacedIsNamed) {
  const auto fields = [](const ProfilePlacement& placement) {
    std::string text;
    for (const Fault& fault : FaultsOf(placement, "header.")) text += fault.field + " ";
    return text;
  };
  EXPECT_EQ(fields({.allow_replace = true}), "header.profile_id ");
  EXPECT_EQ(fields({.profile_id = "a", .etag = "e"}), "header.etag ");
  EXPECT_EQ(fields({.profile_id = "a", .allow_replace = true, .etag = "e"}), "");
}

TEST(ProfileNameTest, ARequestIdIsAUuid) {
  const auto is_uuid = [](const std::string& id) {
    return FaultsOf({.request_id = id}, "").empty();
  };
  EXPECT_TRUE(is_uuid("01234567-89ab-cdef-0123-456789ABCDEF"));
  EXPECT_FALSE(is_uuid("01234567-89ab-cdef-0123-456789ABCDE"));
  EXPECT_FALSE(is_uuid("0123456789abcdef0123456789ABCDEF0123"));
  EXPECT_FALSE(is_uuid("01234567-89ab-cdef-0123-456789ABCDEg"));
}

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

TEST(RequestFaultsTest, WithoutFaultsTheStatusStaysAsItIs) {
  EXPECT_TRUE(WithFaults({}, absl::OkStatus()).ok());
  const absl::Status status = FaultsError("SOME_REASON", {{.field = "a", .description = "b"}});
  EXPECT_EQ(WithFaults({}, status), status);
}

TEST(RequestFaultsTest, FaultsGoBeforeTheStatussOwn) {
  const absl::Status status =
      WithFaults({{.field = "x", .description = "bad"}},
                 FaultsError("SOME_REASON", {{.field = "a", .description = "b"}}));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "x: bad (and 1 more)");
  EXPECT_EQ(DetailsOf(status).reason, "SOME_REASON");
  EXPECT_EQ(DetailsOf(status).faults, (std::vector<Fault>{{"x", "bad"}, {"a", "b"}}));
}

TEST(RequestFaultsTest, AFieldIsReportedOnce) {
  const absl::Status status = WithFaults(
      {{.field = "a", .description = "unknown number 7"}},
      FaultsError("SOME_REASON",
                  {{.field = "a", .description = "missing"}, {.field = "b", .description = "c"}}));
  EXPECT_EQ(DetailsOf(status).faults, (std::vector<Fault>{{"a", "unknown number 7"}, {"b", "c"}}));
}

TEST(RequestFaultsTest, AnythingElseGivesWay) {
  for (const absl::Status& other :
       {absl::OkStatus(), absl::NotFoundError("gone"), absl::UnimplementedError("not yet")}) {
    const absl::Status status = WithFaults({{.field = "a", .description = "b"}}, other);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(DetailsOf(status).reason, "REQUEST_INVALID");
  }
}

TEST(RequestFaultsTest, WhatWasLeftOutStaysCounted) {
  std::vector<Fault> many(50, Fault{.field = "f", .description = "d"});
  for (size_t i = 0; i < many.size(); ++i) many[i].field += std::to_string(i);
  const ErrorDetails details =
      DetailsOf(WithFaults({{.field = "x", .description = "y"}}, FaultsError("SOME_REASON", many)));
  EXPECT_EQ(details.faults.size() + details.faults_left_out, 51U);
}

TEST(RequestFaultsTest, PathsGetLonger) {
  EXPECT_EQ(FaultsUnder("profile", {{.field = "steps[0]", .description = "d"}}).at(0).field,
            "profile.steps[0]");
}

}  // namespace
}  // namespace stepcast::server::request_checks_test
