#include "client/cli/profile_table.h"

#include <gtest/gtest.h>

#include "tests/client/support/tiny_profile.h"

namespace stepcast::client::profile_table_test {
namespace {

Profile Stored() {
  Profile profile = TinyProfile();
  profile.name = "profiles/tiny";
  profile.labels = {{"gpu", "v100"}, {"team", "vision"}};
  profile.digest = "abc";
  profile.etag = "e1";
  profile.owner = "vision-ci";
  profile.create_time = std::chrono::sys_days(std::chrono::year(2026) / 11 / 20) +
                        std::chrono::hours(12) + std::chrono::milliseconds(1500);
  profile.size_bytes = 1536;
  profile.operation_count = 4;
  profile.step_count = 1;
  return profile;
}

TEST(ProfileTableTest, HasARowAProfile) {
  EXPECT_EQ(ProfileTable({Stored(), {.name = "profiles/b"}}),
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

}  // namespace
}  // namespace stepcast::client::profile_table_test
