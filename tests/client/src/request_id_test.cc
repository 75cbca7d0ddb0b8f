#include "client/src/request_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace stepcast::client::request_id_test {
namespace {

TEST(RequestIdTest, IsAUuidOfVersionFour) {
  EXPECT_THAT(
      NewRequestId(),
      testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
}

TEST(RequestIdTest, NeverComesTwice) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(NewRequestId());
  EXPECT_EQ(ids.size(), 1000);
}

}  // namespace
}  // namespace stepcast::client::request_id_test
