#include "core/predict/training_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace stepcast::training_plan_test {
namespace {

using ::testing::UnorderedElementsAre;

constexpr double kHour = 3600;

Scenario OfCollectives(int32_t workers, int32_t per_node) {
  Scenario scenario{.workers = workers, .communication = AllReduce{.workers_per_node = per_node}};
  return scenario;
}

TEST(TrainingPlanTest, BegunNodesArePaidFor) {
  const MachinePrices prices{
      .worker_hour = 2, .parameter_server_hour = 0.5, .node_hour = 3, .currency_code = "USD"};
  EXPECT_DOUBLE_EQ(kHour * MoneyPerSecond(prices, OfCollectives(9, 8), 9, 0), 9 * 2 + 2 * 3);
  const Scenario servers{.workers = 4, .communication = ParameterServers{.servers = 2}};
  EXPECT_DOUBLE_EQ(kHour * MoneyPerSecond(prices, servers, 4, 2), 4 * 2 + 4 * 3 + 2 * 0.5);
}

TEST(TrainingPlanTest, TimeAndMoneyFollowTheThroughput) {
  const TrainingPlan plan{.examples = 360'000, .prices = MachinePrices{.worker_hour = 2}};
  const TrainingForecast forecast = ForecastOf(plan, OfCollectives(4, 1), 100, 80, 120);
  EXPECT_DOUBLE_EQ(forecast.seconds, kHour);
  EXPECT_DOUBLE_EQ(forecast.shortest_seconds, 3000);
  EXPECT_DOUBLE_EQ(forecast.longest_seconds, 4500);
  EXPECT_DOUBLE_EQ(*forecast.cost, 8);
  EXPECT_FALSE(forecast.expected_seconds.has_value());
}

// One training with failures, drawn: work in pieces, each with a checkpoint behind it, done again
// from its begin after a failure and a restart. Failures strike restarts, too.
double DrawnSeconds(const Failures& failures, int32_t workers, double work, std::mt19937_64& draw) {
  std::exponential_distribution<double> until(workers / failures.worker_seconds_between);
  const double interval = failures.IntervalOf(workers);
  double seconds = 0;
  for (double left = work; left > 0; left -= interval) {
    // The last piece is as long as the others: the formula knows no part of one.
    const double piece = interval + failures.checkpoint_seconds;
    double failure = until(draw);
    while (failure < piece) {
      seconds += failure;
      double restart = until(draw);
      while (restart < failures.restart_seconds) {
        seconds += restart;
        restart = until(draw);
      }
      seconds += failures.restart_seconds;
      failure = until(draw);
    }
    seconds += piece;
  }
  return seconds;
}

TEST(TrainingPlanTest, TheExpectedTimeIsTheMeanOfDrawnTrainings) {
  std::mt19937_64 draw(7);
  const Failures failures{.worker_seconds_between = 4000 * kHour,
                          .checkpoint_seconds = 120,
                          .restart_seconds = 600,
                          .interval_seconds = std::nullopt};
  for (const int32_t workers : {64, 1024, 8192}) {
    const double work = 200 * failures.IntervalOf(workers);
    double sum = 0;
    constexpr int kTrainings = 400;
    for (int i = 0; i < kTrainings; ++i) sum += DrawnSeconds(failures, workers, work, draw);
    EXPECT_NEAR(failures.ExpectedSeconds(work, workers) / (sum / kTrainings), 1, 0.01) << workers;
  }
}

TEST(TrainingPlanTest, DalysIntervalIsTheBest) {
  Failures failures{.worker_seconds_between = 4000 * kHour,
                    .checkpoint_seconds = 120,
                    .restart_seconds = 600,
                    .interval_seconds = std::nullopt};
  for (const int32_t workers : {1, 64, 1024, 8192}) {
    const double best = failures.IntervalOf(workers);
    const double least = failures.ExpectedSeconds(kHour, workers);
    for (const double factor : {0.5, 0.8, 1.25, 2.0}) {
      failures.interval_seconds = best * factor;
      EXPECT_GT(failures.ExpectedSeconds(kHour, workers), least) << workers << " x " << factor;
    }
    failures.interval_seconds.reset();
  }
}

TEST(TrainingPlanTest, AJobThatFailsBeforeItsCheckpointNeverEnds) {
  const Failures failures{.worker_seconds_between = 60,
                          .checkpoint_seconds = 7200,
                          .restart_seconds = 0,
                          .interval_seconds = kHour};
  EXPECT_TRUE(std::isinf(failures.ExpectedSeconds(kHour, 1)));
  const TrainingPlan plan{.examples = 100, .prices = MachinePrices{}, .failures = failures};
  EXPECT_FALSE(ForecastOf(plan, OfCollectives(1, 1), 1, 1, 1).expected_cost.has_value());
}

TEST(TrainingPlanTest, EveryFaultIsToldByItsField) {
  const TrainingPlan plan{
      .examples = 0,
      .prices = MachinePrices{.worker_hour = -1, .currency_code = std::string(17, 'X')},
      .failures = Failures{.worker_seconds_between = 0,
                           .checkpoint_seconds = 0,
                           .restart_seconds = -1,
                           .interval_seconds = 0}};
  RequestFaults faults;
  CheckPlan("plan", plan, faults);
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(std::move(faults).ToStatus("X")).faults)
    fields.push_back(fault.field);
  EXPECT_THAT(fields, UnorderedElementsAre(
                          "plan.examples", "plan.worker_hour", "plan.currency_code",
                          "plan.failures.worker_mean_time_between", "plan.failures.checkpoint_time",
                          "plan.failures.restart_time", "plan.failures.checkpoint_interval"));
}

}  // namespace
}  // namespace stepcast::training_plan_test
