#include "core/predict/order_consistency.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/predict/order.h"
#include "tests/core/predict/example_profiles.h"

namespace stepcast::order_consistency_test {
namespace {

using testing::ExampleOperation;

// Two downloads and their computations, a step an order: the first computation needs `a` alone,
// the second both. Ends by step: of `a`, `b`, the first and the second computation.
Profile TwoDownloads(const std::vector<std::array<int64_t, 4>>& ends) {
  ProfileDraft draft = testing::DraftOf({{"a", Resource::kDownlink, 10, {}},
                                         {"b", Resource::kDownlink, 30, {}},
                                         {"first", Resource::kWorker, 20, {0}},
                                         {"second", Resource::kWorker, 40, {1, 2}}});
  draft.steps.clear();
  for (const std::array<int64_t, 4>& step : ends) {
    draft.steps.push_back({.start_ns = {step[0] - 10, step[1] - 30, step[2] - 20, step[3] - 40},
                           .end_ns = {step[0], step[1], step[2], step[3]}});
  }
  return Profile::Create(std::move(draft)).value();
}

LeastStep StepOf(const Profile& profile, const Scenario& scenario) {
  return LeastStep::Build(profile, scenario).value();
}

// Upper bound 100, lower bound 60; `a` first makes a step of 80, `b` first one of 100.
TEST(OrderConsistencyTest, EachRecordedStepHasTheEfficiencyOfItsTime) {
  const Profile profile =
      TwoDownloads({{10, 40, 30, 80}, {40, 30, 60, 100}, {10, 40, 30, 80}, {40, 30, 60, 100}});
  const RecordedOrders found = CheckRecordedOrders(profile, NeverStop).value();
  EXPECT_EQ(found.unique_orders, 2);
  EXPECT_EQ(found.step_seconds, (std::vector<double>{80e-9, 100e-9, 80e-9, 100e-9}));
  EXPECT_EQ(found.efficiencies, (std::vector<double>{0.5, 0, 0.5, 0}));
  EXPECT_NEAR(*found.r_squared, 1, 1e-12);
}

TEST(OrderConsistencyTest, WhatTheBoundsOfAStepExplainIsNotItsOrders) {
  // The same order in each; the second's last computation took twice as long.
  ProfileDraft draft =
      TwoDownloads({{10, 40, 30, 80}, {10, 40, 30, 80}, {10, 40, 30, 80}}).content();
  draft.steps[1].end_ns[3] = 120;
  const RecordedOrders found =
      CheckRecordedOrders(Profile::Create(std::move(draft)).value(), NeverStop).value();
  EXPECT_EQ(found.unique_orders, 1);
  EXPECT_EQ(found.efficiencies[0], 0.5);
  EXPECT_EQ(found.efficiencies[1], 0.5);  // 140 one by one, 100 at least, 120
  EXPECT_FALSE(found.r_squared.has_value());
}

TEST(OrderConsistencyTest, ASpreadIsOfTheOrdersThatAScenariosOwnOrderTakes) {
  const Profile profile = TwoDownloads({{10, 40, 30, 80}, {40, 30, 60, 100}, {10, 40, 30, 80}});
  const Scenario scenario = ResolveScenario(profile, {}).value();
  const LeastStep step = StepOf(profile, scenario);
  const auto spread = [&](TransferOrder order) {
    return SpreadOfOrders(order, profile, scenario, step, 1, NeverStop).value();
  };
  const OrderSpread recorded = spread(TransferOrder::kRecorded);
  EXPECT_EQ(recorded.orders, 3);
  EXPECT_EQ(recorded.unique_orders, 2);
  EXPECT_DOUBLE_EQ(recorded.mean_efficiency, 1.0 / 3);
  EXPECT_EQ(recorded.least_efficiency, 0);
  const OrderSpread graph = spread(TransferOrder::kGraph);
  EXPECT_EQ(graph.orders, 1);
  EXPECT_EQ(graph.unique_orders, 1);
  EXPECT_EQ(graph.mean_efficiency, 0.5);
  const OrderSpread random = spread(TransferOrder::kRandom);
  EXPECT_EQ(random.orders, kRandomOrders);
  EXPECT_EQ(random.unique_orders, 2);
  EXPECT_NEAR(random.mean_efficiency, 0.25, 0.1);
}

// TicTac, 2.2: of many parameters hardly any order is taken twice.
TEST(OrderConsistencyTest, RandomOrdersOfManyDownloadsAreAllDifferent) {
  const Profile profile = testing::NetworkProfile(3, {.layers = 20});
  const Scenario scenario = ResolveScenario(profile, {}).value();
  const OrderSpread spread = SpreadOfOrders(TransferOrder::kRandom, profile, scenario,
                                            StepOf(profile, scenario), 7, NeverStop)
                                 .value();
  EXPECT_EQ(spread.unique_orders, kRandomOrders);
  EXPECT_LT(spread.least_efficiency, spread.mean_efficiency);
}

TEST(OrderConsistencyTest, RSquaredIsTheShareThatALineExplains) {
  EXPECT_NEAR(*RSquaredOf({1, 2, 3, 4}, {3, 1, -1, -3}), 1, 1e-12);
  EXPECT_NEAR(*RSquaredOf({1, 2, 3}, {1, 3, 2}), 0.25, 1e-12);
  EXPECT_FALSE(RSquaredOf({1, 2}, {3, 4}).has_value());
  EXPECT_FALSE(RSquaredOf({0.1, 0.1, 0.1}, {1, 2, 3}).has_value());
  EXPECT_FALSE(RSquaredOf({1, 2, 3}, {0.3, 0.3, 0.3}).has_value());
}

// TicTac, 6.3: workers that each have an order of their own wait for the one with the worst;
// whatever order is enforced, they do not.
TEST(OrderConsistencyTest, WorkersWithOrdersOfTheirOwnWaitAndSpreadAndEnforcedOnesDoNot) {
  const Profile profile = testing::NetworkProfile(2, {.layers = 12});
  OrderDraft draft{.options = {.steps_per_worker = 40, .replications = 1},
                   .methods = {OrderMethod::kTic, OrderMethod::kReverse}};
  draft.scenario.workers = 4;
  const OrderQuery query = ResolveOrder(profile, draft).value();
  const OrderAnswer answer = OptimizeOrder(profile, query, NeverStop).value();
  ASSERT_EQ(answer.baselines.size(), 3u);
  for (const OrderResult& order : answer.orders) {
    EXPECT_LT(order.straggler_effect, 1e-9);
    EXPECT_NEAR(order.synchronous_step_time.p99, order.synchronous_step_time.p50,
                0.01 * order.synchronous_step_time.p50);
  }
  const OrderBaseline& random = answer.baselines[2];
  EXPECT_EQ(random.order, TransferOrder::kRandom);
  EXPECT_GT(random.straggler_effect, 0.01);
  EXPECT_GT(random.synchronous_step_time.p95, 1.01 * random.synchronous_step_time.p50);
  EXPECT_EQ(random.spread.orders, kRandomOrders);
  EXPECT_LT(answer.baselines[1].straggler_effect, 1e-9);
}

}  // namespace
}  // namespace stepcast::order_consistency_test
