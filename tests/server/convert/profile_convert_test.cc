#include "server/convert/profile_convert.h"

#include <gtest/gtest.h>

#include "tests/server/support/random_profile.h"

namespace stepcast::server::profile_convert_test {
namespace {

TEST(ProfileConvertTest, AProfileComesBackAsItWas) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const ProfileDraft draft = RandomProfile(seed);
    const ProfileInput back = FromWire(ToWire(draft));
    EXPECT_TRUE(back.draft == draft) << "seed " << seed;
    EXPECT_TRUE(back.faults.empty()) << "seed " << seed;
  }
}

TEST(ProfileConvertTest, NoParameterServersMeanOne) {
  EXPECT_EQ(FromWire(v1::Profile()).draft.parameter_servers, 1);
}

TEST(ProfileConvertTest, AnUnknownResourceIsAFaultAtItsOperation) {
  v1::Profile wire = ToWire(SmallProfile());
  wire.mutable_operations(1)->set_resource(static_cast<v1::Operation::Resource>(1000));
  const ProfileInput input = FromWire(wire);
  ASSERT_EQ(input.faults.size(), 1U);
  EXPECT_EQ(input.faults[0].field, "operations[1].resource");
  EXPECT_NE(input.faults[0].description.find("1000"), std::string::npos);
  EXPECT_EQ(input.draft.operations[1].resource, Resource::kUnspecified);
}

ProfileSummary Summary() {
  return {.id = "one",
          .digest = "d",
          .etag = "e",
          .display_name = "name",
          .model = "m",
          .framework = "f",
          .labels = {{"k", "v"}},
          .batch_size = 3,
          .parameter_servers = 2,
          .operation_count = 5,
          .step_count = 6,
          .size_bytes = 7,
          .create_time_ns = 8'000'000'009};
}

TEST(ProfileConvertTest, TheBasicViewHasWhatASummaryKnows) {
  const v1::Profile wire = ToWire(Summary());
  EXPECT_EQ(wire.name(), "profiles/one");
  EXPECT_EQ(wire.digest(), "d");
  EXPECT_EQ(wire.etag(), "e");
  EXPECT_EQ(wire.display_name(), "name");
  EXPECT_EQ(wire.model(), "m");
  EXPECT_EQ(wire.framework(), "f");
  EXPECT_EQ(wire.labels().at("k"), "v");
  EXPECT_EQ(wire.batch_size(), 3);
  EXPECT_EQ(wire.parameter_servers(), 2);
  EXPECT_EQ(wire.operation_count(), 5);
  EXPECT_EQ(wire.step_count(), 6);
  EXPECT_EQ(wire.size_bytes(), 7);
  EXPECT_EQ(wire.create_time().seconds(), 8);
  EXPECT_EQ(wire.create_time().nanos(), 9);
  EXPECT_EQ(wire.operations_size(), 0);
  EXPECT_FALSE(wire.has_platform());
}

TEST(ProfileConvertTest, TheFullViewHasTheContentToo) {
  const ProfileDraft draft = RandomProfile(1);
  const v1::Profile wire = ToWire(ProfileAnswer{.summary = Summary(), .content = draft});
  EXPECT_EQ(wire.name(), "profiles/one");
  EXPECT_EQ(static_cast<size_t>(wire.operations_size()), draft.operations.size());
  EXPECT_EQ(wire.platform().bandwidth_bytes_per_second(),
            draft.platform.bandwidth_bytes_per_second);
  EXPECT_EQ(wire.labels().size(), 1U) << "the stored labels, not the content's";
}

TEST(ProfileConvertTest, WhatWasNotStoredHasNoTime) {
  ProfileSummary summary = Summary();
  summary.create_time_ns = 0;
  EXPECT_FALSE(ToWire(summary).has_create_time());
}

}  // namespace
}  // namespace stepcast::server::profile_convert_test
