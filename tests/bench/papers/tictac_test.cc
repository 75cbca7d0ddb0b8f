#include "tests/bench/papers/tictac.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace stepcast::bench::tictac_test {
namespace {

using ::testing::HasSubstr;

// TicTac, 6.1 to 6.3: enforcing an order gains, is close to the best schedule, and ends waiting.
TEST(TicTacTest, AnEnforcedOrderIsEfficientAndNobodyWaitsForIt) {
  const std::vector<TicTacPoint> points =
      TicTacPoints({{"inception_v2", 16}}, {.steps_per_worker = 20, .replications = 1});
  ASSERT_EQ(points.size(), 18u);
  for (const TicTacPoint& point : points) {
    EXPECT_GT(point.efficiency, point.random_efficiency) << point.figure;
    EXPECT_GT(point.random_straggler, point.straggler) << point.figure;
  }
  const auto most = std::max_element(points.begin(), points.end(),
                                     [](const auto& a, const auto& b) { return a.gain < b.gain; });
  EXPECT_GT(most->gain, 0.1);
  EXPECT_THAT(TicTacTable(points), HasSubstr("| 9 | inception_v2 | training | 8 | 4 | 16 | "));
}

// TicTac, Fig. 12: efficiency tells the step time, and an enforced order hardly spreads.
TEST(TicTacTest, EfficiencyTellsTheStepTimeAndAnEnforcedOrderIsConsistent) {
  const Consistency training = MeasureConsistency(/*inference=*/false, 60);
  EXPECT_GT(training.r_squared, 0.9);
  const Consistency inference = MeasureConsistency(/*inference=*/true, 60);
  EXPECT_GT(inference.tac_p95, 0.95);
  EXPECT_LT(inference.random_p95, inference.tac_p95 - 0.05);
}

// ICPE, Fig. 16.
TEST(TicTacTest, WorkersThatBeginTogetherComeOutOfStepAndGetFaster) {
  const std::vector<ThroughputPoint> series = OutOfStep(20);
  ASSERT_EQ(series.size(), 20u);
  EXPECT_GT(series.back().examples_per_second, 1.05 * series.front().examples_per_second);
}

}  // namespace
}  // namespace stepcast::bench::tictac_test
