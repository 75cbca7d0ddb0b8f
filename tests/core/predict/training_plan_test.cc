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

// One training with failures, drawn: work in pieces, each but the last with a checkpoint behind it,
// done again from its begin after a failure and a restart. Failures strike restarts, too.
double DrawnSeconds(const Failures& failures, int32_t workers, double work, std::mt19937_64& draw) {
  std::exponential_distribution<double> until(workers / failures.worker_seconds_between);
  const double interval = failures.IntervalOf(workers);
  double seconds = 0;
  for (double left = work; left > 0; left -= interval) {
    const double piece = left > interval ? interval + failures.checkpoint_seconds : left;
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
    // Short ones end before their first checkpoint, or with work left after the last.
    for (const double intervals : {0.1, 0.999, 1.5, 7.25, 200.0}) {
      const double work = intervals * failures.IntervalOf(workers);
      double sum = 0;
      const int trainings = static_cast<int>(400'000 / std::ceil(intervals));
      for (int i = 0; i < trainings; ++i) sum += DrawnSeconds(failures, workers, work, draw);
      EXPECT_NEAR(failures.ExpectedSeconds(work, workers) / (sum / trainings), 1, 0.01)
          << workers << " workers, " << intervals << " intervals";
    }
  }
}

TEST(TrainingPlanTest, DalysIntervalIsTheBest) {
  Failures failures{.worker_seconds_between = 4000 * kHour,
                    .checkpoint_seconds = 120,
                    .restart_seconds = 600,
                    .interval_seconds = std::nullopt};
  for (const int32_t workers : {1, 64, 1024, 8192}) {
    const double best = failures.IntervalOf(workers);
    // The last interval of so much work, which writes no checkpoint, is next to nothing.
    const double work = 1e4 * best;
    const double least = failures.ExpectedSeconds(work, workers);
    for (const double factor : {0.5, 0.8, 1.25, 2.0}) {
      failures.interval_seconds = best * factor;
      EXPECT_GT(failures.ExpectedSeconds(work, workers), least) << workers << " x " << factor;
    }
    failures.interval_seconds.reset();
  }
}

TEST(TrainingPlanTest, AJobThatFailsBeforeItsCheckpointNeverEnds) {
  const Failures failures{.worker_seconds_between = 60,
                          .checkpoint_seconds = 7200,
                          .restart_seconds = 0,
                          .interval_seconds = kHour};
  EXPECT_TRUE(std::isinf(failures.ExpectedSeconds(2 * kHour, 1)));
  const TrainingPlan plan{.examples = 7200, .prices = MachinePrices{}, .failures = failures};
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
  CheckPlan("plan", plan, {}, faults);
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(std::move(faults).ToStatus("X")).faults)
    fields.push_back(fault.field);
  EXPECT_THAT(fields, UnorderedElementsAre(
                          "plan.examples", "plan.worker_hour", "plan.currency_code",
                          "plan.failures.worker_mean_time_between", "plan.failures.checkpoint_time",
                          "plan.failures.restart_time", "plan.failures.checkpoint_interval"));
}

std::vector<std::string> PriceFaults(const MachinePrices& prices, const Scenario& scenario) {
  RequestFaults faults;
  CheckPrices("prices", prices, {scenario}, faults);
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(std::move(faults).ToStatus("X")).faults)
    fields.push_back(fault.field);
  return fields;
}

TEST(TrainingPlanTest, PricesAreOfMachinesThatTheJobHas) {
  const Scenario meeting = OfCollectives(4, 1);
  const Scenario served{.workers = 4, .communication = ParameterServers{.servers = 2}};
  EXPECT_THAT(PriceFaults({.parameter_server_hour = 2}, meeting),
              UnorderedElementsAre("prices.parameter_server_hour"));
  EXPECT_THAT(PriceFaults({.node_hour = 2}, served), UnorderedElementsAre("prices.node_hour"));
  EXPECT_THAT(PriceFaults({.currency_code = "USD"}, meeting),
              UnorderedElementsAre("prices.currency_code"));
  for (const double amount : {1e-320, 1e-10, 1e16, HUGE_VAL, std::nan("")})
    EXPECT_THAT(PriceFaults({.worker_hour = amount}, meeting),
                UnorderedElementsAre("prices.worker_hour"));
  EXPECT_TRUE(PriceFaults({.worker_hour = 1e-9, .node_hour = 1e15}, meeting).empty());
  EXPECT_TRUE(PriceFaults({.worker_hour = 1, .parameter_server_hour = 1}, served).empty());
}

TEST(TrainingPlanTest, ATrainingOfThousandsOfYearsHasNeitherEndNorCost) {
  const TrainingPlan plan{.examples = INT64_MAX, .prices = MachinePrices{.worker_hour = 2}};
  const TrainingForecast forecast = ForecastOf(plan, OfCollectives(4, 1), 100, 80, 120);
  EXPECT_TRUE(std::isinf(forecast.seconds) && std::isinf(forecast.shortest_seconds));
  EXPECT_FALSE(forecast.cost.has_value());
}

}  // namespace
}  // namespace stepcast::training_plan_test
