#include "client/cli/worker_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::client::worker_list_test {
namespace {

using testing::ElementsAre;

TEST(WorkerListTest, TakesCountsAndRangesInTheirOrder) {
  EXPECT_THAT(*ParseWorkerList("3"), ElementsAre(3));
  EXPECT_THAT(*ParseWorkerList("1-4"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(*ParseWorkerList("1,2,4"), ElementsAre(1, 2, 4));
  EXPECT_THAT(*ParseWorkerList("8,1-2,16"), ElementsAre(8, 1, 2, 16));
  EXPECT_THAT(*ParseWorkerList("5-5"), ElementsAre(5));
}

TEST(WorkerListTest, RefusesTheRest) {
  for (const char* text : {"", ",", "1,", ",1", "0", "-1", "4-1", "1-", "-", "1--2", "a", "1.5",
                           "1 2", "99999999999", "1-2147483647", "1-1025"}) {
    EXPECT_FALSE(ParseWorkerList(text).ok()) << text;
  }
}

TEST(WorkerListTest, TakesAsManyAsOneCallMayAskFor) {
  EXPECT_EQ(ParseWorkerList("1-1024")->size(), 1024);
}

}  // namespace
}  // namespace stepcast::client::worker_list_test
