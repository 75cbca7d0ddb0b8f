#include "core/model/profile.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/model/random_draft.h"

namespace stepcast::profile_test {
namespace {

TEST(ProfileTest, HoldsTheDraftItWasMadeFrom) {
  const ProfileDraft draft = testing::RandomDraft(3);
  const absl::StatusOr<Profile> profile = Profile::Create(draft);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->content(), draft);
  EXPECT_EQ(profile->operations(), draft.operations);
  EXPECT_EQ(profile->steps(), draft.steps);
  EXPECT_EQ(profile->batch_size(), draft.batch_size);
  EXPECT_EQ(profile->platform(), draft.platform);
}

TEST(ProfileTest, ACopySharesTheContent) {
  const absl::StatusOr<Profile> profile = Profile::Create(testing::RandomDraft(3));
  ASSERT_TRUE(profile.ok());
  // The copy is what is tested.
  const Profile copy = *profile;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(&copy.operations(), &profile->operations());
}

TEST(ProfileTest, AnInvalidDraftIsRefusedWithEveryFault) {
  ProfileDraft draft = testing::RandomDraft(3);
  draft.batch_size = 0;
  draft.steps.clear();
  const absl::Status status = Profile::Create(draft).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const ErrorDetails details = DetailsOf(status);
  EXPECT_EQ(details.reason, "PROFILE_INVALID");
  ASSERT_EQ(details.faults.size(), 2u);
  EXPECT_EQ(details.faults[0].field, "batch_size");
  EXPECT_EQ(details.faults[1].field, "steps");
}

TEST(ProfileTest, TheLimitsAreTheCallers) {
  ProfileLimits limits;
  limits.max_operations = 1;
  EXPECT_EQ(DetailsOf(Profile::Create(testing::RandomDraft(3), limits).status()).faults.at(0).field,
            "operations");
}

TEST(ResourceNameTest, IsThatOfTheContract) {
  EXPECT_EQ(ResourceName(Resource::kDownlink), "DOWNLINK");
  EXPECT_EQ(ResourceName(Resource::kWorker), "WORKER");
  EXPECT_EQ(ResourceName(Resource::kUplink), "UPLINK");
  EXPECT_EQ(ResourceName(Resource::kParameterServer), "PARAMETER_SERVER");
  EXPECT_EQ(ResourceName(Resource::kUnspecified), "RESOURCE_UNSPECIFIED");
}

}  // namespace
}  // namespace stepcast::profile_test
