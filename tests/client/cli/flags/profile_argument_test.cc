#include "client/cli/flags/profile_argument.h"

#include <gtest/gtest.h>

namespace stepcast::client::profile_argument_test {
namespace {

TEST(NameInTest, TakesANameWithAndWithoutItsCollection) {
  EXPECT_EQ(NameIn("operations/", "o-1"), "operations/o-1");
  EXPECT_EQ(NameIn("operations/", "operations/o-1"), "operations/o-1");
}

TEST(NameInTest, RefusesWhatCannotBeOne) {
  for (const char* const bad : {"", "operations/", "profiles/a", "operations/operations/a", "UPPER",
                                "a b", "a/b", "\xc3\xa9"}) {
    EXPECT_EQ(NameIn("operations/", bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace stepcast::client::profile_argument_test
