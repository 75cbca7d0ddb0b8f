#include "core/engine/throughput_estimator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/base/time.h"

namespace stepcast::throughput_estimator_test {
namespace {

// Completions written out by hand: ends[w] in seconds, from a start at starts[w]. Told instant by
// instant until every worker is done.
ThroughputEstimator Told(int32_t warmup, int32_t required, const std::vector<int64_t>& starts,
                         const std::vector<std::vector<int64_t>>& ends) {
  std::map<int64_t, std::vector<std::pair<int32_t, size_t>>>
      instants;  // second -> worker and step, 0 for its start
  for (size_t w = 0; w < starts.size(); ++w) {
    instants[starts[w]].emplace_back(static_cast<int32_t>(w), 0);
    for (size_t n = 0; n < ends[w].size(); ++n)
      instants[ends[w][n]].emplace_back(static_cast<int32_t>(w), n + 1);
  }
  ThroughputEstimator estimator(static_cast<int32_t>(starts.size()), warmup, required);
  for (const auto& [second, completions] : instants) {
    const Instant now{Milliseconds(1000 * second).ticks};
    for (const auto& [worker, step] : completions) {
      if (step == 0) {
        estimator.OnStart(worker, now);
        continue;
      }
      const auto& own = ends[static_cast<size_t>(worker)];
      const int64_t begin = step == 1 ? starts[static_cast<size_t>(worker)] : own[step - 2];
      estimator.OnStepEnd(worker, Instant{Milliseconds(1000 * begin).ticks}, now);
    }
    estimator.BeginsAt(now);
    if (estimator.Done()) break;
  }
  return estimator;
}

TEST(ThroughputEstimatorTest, CountsAfterTheWarmUp) {
  const ThroughputEstimator estimator = Told(2, 5, {0}, {{100, 110, 120, 130, 140}});
  ASSERT_TRUE(estimator.Done());
  ASSERT_TRUE(estimator.measured());
  EXPECT_DOUBLE_EQ(estimator.StepsPerSecond(), 3.0 / 30);
}

TEST(ThroughputEstimatorTest, WithoutWarmUpTheStartIsACompletion) {
  const ThroughputEstimator estimator = Told(0, 3, {5}, {{15, 25, 35}});
  EXPECT_DOUBLE_EQ(estimator.StepsPerSecond(), 3.0 / 30);
}

TEST(ThroughputEstimatorTest, WithoutWarmUpTheLastStartBeginsTheCountedTime) {
  // From 12 to 36. The first worker: at 20, 30; the second: its start at 12, and 24, 36.
  const ThroughputEstimator estimator = Told(0, 2, {0, 12}, {{10, 20, 30}, {24, 36}});
  EXPECT_DOUBLE_EQ(estimator.StepsPerSecond(), 1.0 / 10 + 2.0 / 24);
}

TEST(ThroughputEstimatorTest, BothEndsOfTheCountedTimeAreInside) {
  // From 20, where the second ends its warm-up, to 40. The first worker's completions at 20 and 40
  // are both inside.
  const ThroughputEstimator estimator = Told(1, 2, {0, 0}, {{10, 20, 30, 40}, {20, 40}});
  EXPECT_DOUBLE_EQ(estimator.StepsPerSecond(), 2.0 / 20 + 1.0 / 20);
}

TEST(ThroughputEstimatorTest, ARateIsOverTheWorkersOwnCompletionsOnly) {
  // From 20 to 50: the first worker's are at 23 and 43, the second's at 20, 35 and 50.
  const ThroughputEstimator estimator = Told(1, 3, {0, 0}, {{3, 23, 43}, {20, 35, 50}});
  EXPECT_DOUBLE_EQ(estimator.StepsPerSecond(), 1.0 / 20 + 2.0 / 30);
}

TEST(ThroughputEstimatorTest, AWorkerWithoutTwoCompletionsInsideMakesItNoAnswer) {
  // From 20 to 30: the first worker, which stalls then, has but the one at 25.
  const ThroughputEstimator estimator = Told(1, 2, {0, 0}, {{5, 10, 25, 90}, {20, 30}});
  EXPECT_TRUE(estimator.Done());
  EXPECT_FALSE(estimator.measured());
}

TEST(ThroughputEstimatorTest, IsDoneOnlyWhenTheLastWorkerIs) {
  EXPECT_FALSE(Told(1, 3, {0, 0}, {{1, 2, 3, 4, 5}, {10, 20}}).Done());
  EXPECT_TRUE(Told(1, 3, {0, 0}, {{1, 2, 3, 4, 5}, {10, 20, 30}}).Done());
}

TEST(ThroughputEstimatorTest, StepTimesAreThoseOfStepsEndedAfterTheCountedTimeBegan) {
  const ThroughputEstimator estimator = Told(1, 3, {0}, {{50, 60, 80}});
  EXPECT_EQ(estimator.step_times().count(), 2);
  EXPECT_DOUBLE_EQ(estimator.step_times().MeanSeconds(), 15);
}

TEST(ThroughputEstimatorTest, TheHalvesTellAChangeOfPace) {
  // The middle step, of 1 and 5, is the third.
  const ThroughputEstimator estimator = Told(1, 5, {0}, {{10, 20, 30, 70, 110}});
  EXPECT_DOUBLE_EQ(estimator.FirstHalfStepsPerSecond(), 2.0 / 20);
  EXPECT_DOUBLE_EQ(estimator.SecondHalfStepsPerSecond(Instant{Milliseconds(110'000).ticks}),
                   2.0 / 80);
}

}  // namespace
}  // namespace stepcast::throughput_estimator_test
