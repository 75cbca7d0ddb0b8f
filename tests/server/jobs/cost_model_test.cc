#include "server/jobs/cost_model.h"

#include <string>

#include "gtest/gtest.h"

namespace stepcast::server::cost_model_test {
namespace {

TEST(CostModelTest, KnowsNothingAtFirst) {
  EXPECT_EQ(CostModel().ExpectedSeconds({.group = "g", .kind = "k", .size = 5}), 0);
}

TEST(CostModelTest, TakesTheTimeOfAUnitTimesTheSize) {
  CostModel model;
  model.Observe({.group = "g", .kind = "k", .size = 10}, 2);
  EXPECT_DOUBLE_EQ(model.ExpectedSeconds({.group = "g", .kind = "k", .size = 100}), 20);
}

TEST(CostModelTest, AKindNotSeenIsLikeItsGroupAndUnlikeOthers) {
  CostModel model;
  model.Observe({.group = "g", .kind = "k", .size = 1}, 3);
  EXPECT_DOUBLE_EQ(model.ExpectedSeconds({.group = "g", .kind = "other", .size = 1}), 3);
  EXPECT_EQ(model.ExpectedSeconds({.group = "h", .kind = "k", .size = 1}), 0);
}

TEST(CostModelTest, FollowsAMachineThatBecameSlower) {
  CostModel model;
  for (int i = 0; i < 100; ++i) model.Observe({.group = "g", .kind = "k", .size = 1}, 1);
  for (int i = 0; i < 10; ++i) model.Observe({.group = "g", .kind = "k", .size = 1}, 5);
  EXPECT_NEAR(model.ExpectedSeconds({.group = "g", .kind = "k", .size = 1}), 5, 0.3);
}

TEST(CostModelTest, WorkWithoutASizeTeachesNothing) {
  CostModel model;
  model.Observe({.group = "g", .kind = "k", .size = 0}, 5);
  EXPECT_EQ(model.ExpectedSeconds({.group = "g", .kind = "k", .size = 1}), 0);
}

TEST(CostModelTest, ForgetsTheKindsLearnedLongestAgo) {
  CostModel model;
  model.Observe({.group = "old", .kind = "old", .size = 1}, 7);
  for (size_t i = 0; i < CostModel::kMaxKinds; ++i)
    model.Observe({.group = "g", .kind = std::to_string(i), .size = 1}, 1);
  EXPECT_EQ(model.ExpectedSeconds({.group = "old", .kind = "old", .size = 1}), 0);
  EXPECT_EQ(model.ExpectedSeconds({.group = "g", .kind = "1023", .size = 1}), 1);
}

}  // namespace
}  // namespace stepcast::server::cost_model_test
