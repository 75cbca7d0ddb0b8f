#include "client/cli/priority_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::client::priority_file_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(PriorityFileTest, HasANameATabAndARankALine) {
  const auto priorities = ParsePriorities("recv/a\t2\n# comment\n\nrecv b\t-1\r\nrecv\tc\t3");
  ASSERT_TRUE(priorities.ok()) << priorities.status();
  EXPECT_THAT(*priorities, ElementsAre(Pair("recv\tc", 3), Pair("recv b", -1), Pair("recv/a", 2)));
}

TEST(PriorityFileTest, WhatIsWrongIsSaidWithItsLine) {
  EXPECT_THAT(std::string(ParsePriorities("a\t1\nb 2").status().message()),
              HasSubstr("line 2: no tab"));
  EXPECT_THAT(std::string(ParsePriorities("a\tone").status().message()),
              HasSubstr("line 1: \"one\" is no rank"));
  EXPECT_THAT(std::string(ParsePriorities("a\t1\n\na\t2").status().message()),
              HasSubstr("line 3: \"a\" comes twice"));
  EXPECT_FALSE(ParsePriorities("a\t99999999999").ok());
  EXPECT_LT(ParsePriorities("a\t" + std::string(10'000, 'x')).status().message().size(), 200u)
      << "a file is not repeated whole";
}

TEST(PriorityFileTest, ReadsWhatItWrote) {
  const TransferOrderResult order{
      .transfers = {{.name = "z", .rank = 0, .server_rank = 0},
                    {.name = "a", .rank = 0, .parameter_server = 1, .server_rank = 0},
                    {.name = "m", .rank = 1, .server_rank = 1}}};
  EXPECT_EQ(PriorityText(order), "z\t0\na\t0\nm\t1\n");
  EXPECT_THAT(*ParsePriorities(PriorityText(order)),
              ElementsAre(Pair("a", 0), Pair("m", 1), Pair("z", 0)));
}

}  // namespace
}  // namespace stepcast::client::priority_file_test
