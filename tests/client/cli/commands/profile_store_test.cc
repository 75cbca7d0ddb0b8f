#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/texts/answer_texts.h"

#include "tests/client/support/tiny_profile.h"

namespace stepcast::client::profile_store_test {
namespace {

v1::Profile Stored() {
  v1::Profile profile = TinyProfile();
  profile.MergeFrom(Proto<v1::Profile>(R"pb(
    name: "profiles/tiny"
    labels { key: "team" value: "vision" }
    labels { key: "gpu" value: "v100" }
    digest: "abc"
    etag: "e1"
    owner: "vision-ci"
    create_time { seconds: 1795176001 nanos: 500000000 }
    size_bytes: 1536
    operation_count: 4
    step_count: 1)pb"));
  return profile;
}

TEST(ProfileTableTest, HasARowAProfile) {
  v1::ListProfilesResponse list;
  *list.add_profiles() = Stored();
  list.add_profiles()->set_name("profiles/b");
  EXPECT_EQ(ProfileTable(list),
            "name           model  batch  servers  operations  steps       size  created           "
            "    labels\n"
            "profiles/tiny  tiny      10        1           4      1  1.500 KiB  2026-11-20 "
            "12:00:01Z  gpu=v100 team=vision\n"
            "profiles/b     -          0        0           0      0        0 B  -                 "
            "    -\n");
}

TEST(ProfileTextTest, HasALineAPropertyAndTheGraphInShort) {
  EXPECT_EQ(ProfileText(Stored()),
            "profile            profiles/tiny\n"
            "display name       tiny\n"
            "model              tiny\n"
            "framework          test\n"
            "labels             gpu=v100 team=vision\n"
            "batch size         10\n"
            "parameter servers  1\n"
            "operations         4\n"
            "  downloads        1, 1000 B\n"
            "  worker's         1\n"
            "  uploads          1, 1000 B\n"
            "  servers'         1\n"
            "bandwidth          1000000 bytes/s\n"
            "steps              1\n"
            "size               1.500 KiB\n"
            "created            2026-11-20 12:00:01Z\n"
            "owner              vision-ci\n"
            "digest             abc\n"
            "etag               e1\n");
}

TEST(ProfileTextTest, SaysNothingOfServersWhereWorkersMeetInCollectives) {
  v1::Profile profile = Stored();
  profile.mutable_operations(0)->set_resource(v1::Operation::COLLECTIVE);
  const std::string text = ProfileText(profile);
  EXPECT_THAT(text, ::testing::HasSubstr("  collectives  1, 1000 B\n"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("servers")));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("downloads")));
}

}  // namespace
}  // namespace stepcast::client::profile_store_test
