#include "server/handlers/profile_name.h"

#include <gtest/gtest.h>

namespace stepcast::server::profile_name_test {
namespace {

TEST(ProfileNameTest, IdsFollowTheRule) {
  for (const std::string id : {"a", "a1", "p-0123", "resnet50-v1", "a--b"})
    EXPECT_TRUE(IsProfileId(id)) << id;
  for (const std::string id : {"", "1a", "-a", "a-", "A", "a_b", "a.b", "a/b", "\xC3\xA4"})
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

}  // namespace
}  // namespace stepcast::server::profile_name_test
