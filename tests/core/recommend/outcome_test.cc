#include <gtest/gtest.h>

#include "core/base/random.h"
#include "core/recommend/recommendation.h"

namespace stepcast::outcome_test {
namespace {

RecommendationQuery Query() {
  RecommendationQuery query{.max_workers = 16, .objective = Objective::kMaxThroughput};
  query.server_choices.resize(1);
  return query;
}

constexpr Pace kHundred{.examples_per_second = 100, .one_worker_examples_per_second = 40};

TEST(OutcomeTest, WithoutExamplesThereIsNoTimeAndNoCost) {
  const RecommendationQuery query = Query();
  const Outcome outcome = Weighing(query).OutcomeOf({4, 1}, kHundred);
  EXPECT_FALSE(outcome.duration_seconds || outcome.cost);
  EXPECT_EQ(outcome.largest_miss(), 0);
}

TEST(OutcomeTest, EveryMachineIsPaidForAsLongAsTheExamplesTake) {
  RecommendationQuery query = Query();
  query.examples = 360'000;
  query.prices = MachinePrices{.worker_hour = 2, .parameter_server_hour = 5};
  const Outcome outcome = Weighing(query).OutcomeOf({4, 3}, kHundred);
  EXPECT_DOUBLE_EQ(*outcome.duration_seconds, 3600);
  EXPECT_DOUBLE_EQ(*outcome.cost, 4 * 2 + 3 * 5);
}

TEST(OutcomeTest, RoundingMissesNothing) {
  RecommendationQuery query = Query();
  query.examples = 360'000;
  query.deadline_seconds = 3600 * (1 - 1e-13);
  EXPECT_TRUE(Weighing(query).OutcomeOf({4, 1}, kHundred).broken.empty());
  query.deadline_seconds = 3600 * (1 - 1e-6);
  EXPECT_EQ(Weighing(query).OutcomeOf({4, 1}, kHundred).broken.size(), 1U);
}

TEST(OutcomeTest, MissesAreSharesOfTheLimits) {
  RecommendationQuery query = Query();
  query.examples = 360'000;
  query.prices = MachinePrices{.worker_hour = 2};
  query.deadline_seconds = 3000;
  query.budget = 5;
  query.min_scaling_efficiency = 0.8;
  const Outcome outcome = Weighing(query).OutcomeOf({4, 1}, kHundred);
  ASSERT_EQ(outcome.broken.size(), 3u);
  EXPECT_EQ(outcome.broken[0].kind, ConstraintKind::kDeadline);
  EXPECT_NEAR(outcome.broken[0].missed_by, 0.2, 1e-12);
  EXPECT_EQ(outcome.broken[1].kind, ConstraintKind::kBudget);
  EXPECT_NEAR(outcome.broken[1].missed_by, 0.6, 1e-12);
  EXPECT_EQ(outcome.broken[2].kind, ConstraintKind::kMinScalingEfficiency);
  EXPECT_NEAR(outcome.broken[2].missed_by, 1 - 0.625 / 0.8, 1e-12);
  EXPECT_NEAR(outcome.largest_miss(), 0.6, 1e-12);
}

TEST(OutcomeTest, AChangeOfTheRunningJobTakesItsTimeButStayingDoesNot) {
  RecommendationQuery query = Query();
  query.examples = 1000;
  query.current = CurrentAllocation{.workers = 4, .parameter_servers = 1, .rescale_seconds = 30};
  const Weighing weighing(query);
  EXPECT_DOUBLE_EQ(*weighing.OutcomeOf({4, 1}, kHundred).duration_seconds, 10);
  EXPECT_DOUBLE_EQ(*weighing.OutcomeOf({5, 1}, kHundred).duration_seconds, 40);
  EXPECT_DOUBLE_EQ(*weighing.OutcomeOf({4, 2}, kHundred).duration_seconds, 40);
  EXPECT_DOUBLE_EQ(weighing.ScoreOf({5, 1}, kHundred).value, 25);
}

TEST(OutcomeTest, EachObjectiveHasItsValue) {
  RecommendationQuery query = Query();
  query.prices = MachinePrices{.worker_hour = 3600, .parameter_server_hour = 7200};
  const auto value = [&](Objective objective) {
    query.objective = objective;
    return Weighing(query).ScoreOf({4, 2}, kHundred).value;
  };
  EXPECT_DOUBLE_EQ(value(Objective::kMaxThroughput), 100);
  EXPECT_DOUBLE_EQ(value(Objective::kMinTime), 100);
  EXPECT_DOUBLE_EQ(value(Objective::kMinCost), 100.0 / (4 + 2 * 2));
  EXPECT_DOUBLE_EQ(value(Objective::kKnee), 100.0 * 100 / 4);
  query.server_choices.resize(2);
  EXPECT_DOUBLE_EQ(value(Objective::kKnee), 100.0 * 100 / 6);
}

TEST(ScoreTest, KeepingTheConstraintsComesBeforeEveryValue) {
  EXPECT_GT((Score{.miss = 0, .value = 1}), (Score{.miss = 0.1, .value = 1000}));
  EXPECT_GT((Score{.miss = 0.1, .value = 1}), (Score{.miss = 0.2, .value = 1000}));
  EXPECT_GT((Score{.miss = 0, .value = 2}), (Score{.miss = 0, .value = 1}));
  EXPECT_FALSE((Score{.value = 1.0004}.ClearlyAbove({.value = 1})));
  EXPECT_TRUE((Score{.value = 1.0006}.ClearlyAbove({.value = 1})));
}

// The best choice by score is the best of what is told, whatever fails.
TEST(OutcomeTest, OfTwoChoicesTheScoresOrderIsThatOfTimeOrCost) {
  int reversed = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 9});
    RecommendationQuery query = Query();
    query.examples = static_cast<int64_t>(1 + random.Below(100'000));
    query.prices =
        MachinePrices{.worker_hour = 1 + random.Unit(), .parameter_server_hour = random.Unit()};
    query.failures = Failures{.worker_seconds_between = 1000 + 20'000 * random.Unit(),
                              .checkpoint_seconds = 1 + 30 * random.Unit(),
                              .restart_seconds = 100 * random.Unit()};
    if (random.Below(2) == 0)
      query.current = CurrentAllocation{
          .workers = 3, .parameter_servers = 1, .rescale_seconds = 100 * random.Unit()};
    const Choice a{static_cast<int32_t>(1 + random.Below(16)), 1};
    const Choice b{static_cast<int32_t>(1 + random.Below(16)), 1};
    const Pace of_a{.examples_per_second = 1 + 100 * random.Unit(),
                    .one_worker_examples_per_second = 50};
    const Pace of_b{.examples_per_second = 1 + 100 * random.Unit(),
                    .one_worker_examples_per_second = 50};
    for (const Objective objective : {Objective::kMinTime, Objective::kMinCost}) {
      query.objective = objective;
      const Weighing weighing(query);
      const auto told = [&](const Choice& choice, const Pace& pace) {
        const Outcome outcome = weighing.OutcomeOf(choice, pace);
        return objective == Objective::kMinTime ? *outcome.duration_seconds : *outcome.cost;
      };
      EXPECT_EQ(weighing.ScoreOf(a, of_a) > weighing.ScoreOf(b, of_b),
                told(a, of_a) < told(b, of_b));
    }
    query.objective = Objective::kMaxThroughput;
    const Weighing fastest(query);
    reversed += (fastest.ScoreOf(a, of_a) > fastest.ScoreOf(b, of_b)) !=
                (*fastest.OutcomeOf(a, of_a).duration_seconds <
                 *fastest.OutcomeOf(b, of_b).duration_seconds);
  }
  EXPECT_GT(reversed, 20) << "failures decide nothing here";
}

// So a bound on throughput is a bound on the score.
TEST(OutcomeTest, MoreThroughputIsNeverWorse) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 8});
    RecommendationQuery query = Query();
    query.objective = static_cast<Objective>(random.Below(4));
    query.examples = static_cast<int64_t>(1 + random.Below(100'000));
    query.prices =
        MachinePrices{.worker_hour = 1 + random.Unit(), .parameter_server_hour = random.Unit()};
    if (random.Below(2) == 0) query.deadline_seconds = 1000 * random.Unit() + 1;
    if (random.Below(2) == 0) query.budget = random.Unit() + 0.01;
    if (random.Below(2) == 0) query.min_scaling_efficiency = random.Unit();
    if (random.Below(2) == 0)
      query.current = CurrentAllocation{
          .workers = 3, .parameter_servers = 1, .rescale_seconds = 100 * random.Unit()};
    if (random.Below(2) == 0)
      query.failures =
          Failures{.worker_seconds_between = 1000 * random.Unit() + 1, .checkpoint_seconds = 10};
    const Weighing weighing(query);
    const Choice choice{static_cast<int32_t>(1 + random.Below(5)), 1};
    const double less = 1 + 100 * random.Unit();
    const double more = less * (1 + random.Unit());
    EXPECT_GE(weighing.ScoreOf(choice,
                               {.examples_per_second = more, .one_worker_examples_per_second = 50}),
              weighing.ScoreOf(
                  choice, {.examples_per_second = less, .one_worker_examples_per_second = 50}));
  }
}

}  // namespace
}  // namespace stepcast::outcome_test
