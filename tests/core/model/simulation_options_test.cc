#include "core/model/simulation_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace stepcast::simulation_options_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Paths(const absl::Status& status) {
  std::vector<std::string> paths;
  for (const Fault& fault : DetailsOf(status).faults) paths.push_back(fault.field);
  return paths;
}

TEST(SimulationOptionsTest, WhatIsUnsetHasTheDefaultsOfTheContract) {
  const SimulationOptions options = ResolveOptions({}).value();
  EXPECT_EQ(options.steps_per_worker, 1000);
  EXPECT_EQ(options.warmup_steps, 50);
  EXPECT_EQ(options.seed, 1u);
  EXPECT_EQ(options.replications, 5);
  EXPECT_EQ(options.relative_precision, 0);
  EXPECT_EQ(options.time_budget_seconds, 0);
  EXPECT_TRUE(options.automatic_replications);
  EXPECT_EQ(options.start, Start::kStaggered);
  EXPECT_EQ(options.horizon, Horizon::kSteadyState);
  EXPECT_EQ(options.confidence_level, 0.95);
}

TEST(SimulationOptionsTest, RunsOfCollectivesAreShorterUnlessALengthWasAskedFor) {
  const Scenario collectives{.workers = 8, .communication = AllReduce{}};
  const SimulationOptions unasked = ResolveOptions({}).value();
  for (const int32_t length : {0, kAutomaticLengths - 1}) {
    EXPECT_EQ(OptionsOfRuns(unasked, collectives, length).steps_per_worker, 100);
    EXPECT_EQ(OptionsOfRuns(unasked, collectives, length).warmup_steps, 5);
  }
  for (const SimulationOptionsDraft& draft : {SimulationOptionsDraft{.steps_per_worker = 1000},
                                              SimulationOptionsDraft{.warmup_steps = 200}}) {
    const SimulationOptions asked = ResolveOptions(draft).value();
    EXPECT_EQ(OptionsOfRuns(asked, collectives, 0), asked);
    EXPECT_EQ(OptionsOfRuns(asked, Scenario{.workers = 8}, 0), asked);
  }
}

TEST(SimulationOptionsTest, RunsWithServersAreAsLongAsTheStepsOfAllWorkersSay) {
  const SimulationOptions unasked = ResolveOptions({}).value();
  const auto steps = [&](int32_t workers, int32_t length) {
    const SimulationOptions runs = OptionsOfRuns(unasked, Scenario{.workers = workers}, length);
    EXPECT_EQ(runs.warmup_steps, std::min(50, runs.steps_per_worker / 10));
    return runs.steps_per_worker;
  };
  EXPECT_EQ(steps(1, 0), 400);
  EXPECT_EQ(steps(4, 0), 100);
  EXPECT_EQ(steps(64, 0), 40);
  EXPECT_EQ(steps(1, 1), 1000);
  EXPECT_EQ(steps(4, 1), 600);
  EXPECT_EQ(steps(64, 1), 100);
  EXPECT_FALSE(
      ResolveOptions({.horizon = Horizon::kFirstSteps, .horizon_steps = 3})->automatic_steps);
}

TEST(SimulationOptionsTest, APrecisionEndsReplicationsSoTheirMostIsHigher) {
  EXPECT_EQ(ResolveOptions({.relative_precision = 0.01})->replications, 100);
  EXPECT_EQ(ResolveOptions({.replications = 7, .relative_precision = 0.01})->replications, 7);
  EXPECT_EQ(ResolveOptions({.relative_precision = 0})->replications, 5);
}

TEST(SimulationOptionsTest, ReplicationsGrowByThemselvesOnlyWhereNothingSaysTheirNumber) {
  EXPECT_FALSE(ResolveOptions({.replications = 5})->automatic_replications);
  EXPECT_FALSE(ResolveOptions({.relative_precision = 0.01})->automatic_replications);
}

TEST(SimulationOptionsTest, OnlyASteadyStateStartsStaggeredByDefault) {
  EXPECT_EQ(ResolveOptions({.horizon = Horizon::kFirstSteps, .horizon_steps = 3})->start,
            Start::kSimultaneous);
  EXPECT_EQ(ResolveOptions({.horizon = Horizon::kFirstSeconds, .horizon_seconds = 3})->start,
            Start::kSimultaneous);
  EXPECT_EQ(ResolveOptions(
                {.start = Start::kStaggered, .horizon = Horizon::kFirstSteps, .horizon_steps = 3})
                ->start,
            Start::kStaggered);
  EXPECT_EQ(ResolveOptions({.start = Start::kSimultaneous})->start, Start::kSimultaneous);
}

TEST(SimulationOptionsTest, TheWarmUpShrinksWithAShortRunOnly) {
  EXPECT_EQ(ResolveOptions({.steps_per_worker = 2})->warmup_steps, 0);
  EXPECT_EQ(ResolveOptions({.steps_per_worker = 100})->warmup_steps, 5);
  EXPECT_EQ(ResolveOptions({.steps_per_worker = 999})->warmup_steps, 49);
  EXPECT_EQ(ResolveOptions({.steps_per_worker = 5000})->warmup_steps, 50);
}

TEST(SimulationOptionsTest, WhatIsSetIsKeptZeroIncluded) {
  const SimulationOptionsDraft draft{.steps_per_worker = 40,
                                     .warmup_steps = 0,
                                     .seed = 0,
                                     .replications = 1,
                                     .relative_precision = 0.01,
                                     .time_budget_seconds = 0.25,
                                     .start = Start::kStaggered,
                                     .horizon = Horizon::kSteadyState,
                                     .confidence_level = 0.5};
  const SimulationOptions expected{.steps_per_worker = 40,
                                   .warmup_steps = 0,
                                   .seed = 0,
                                   .replications = 1,
                                   .relative_precision = 0.01,
                                   .time_budget_seconds = 0.25,
                                   .start = Start::kStaggered,
                                   .confidence_level = 0.5};
  EXPECT_EQ(ResolveOptions(draft).value(), expected);
}

struct BadOptions {
  std::string title;
  SimulationOptionsDraft draft;
  std::string path;
  std::string says;
};

class BadOptionsTest : public ::testing::TestWithParam<BadOptions> {};

TEST_P(BadOptionsTest, AreRefusedAtTheirPathWithTheOffendingValue) {
  const absl::Status status = ResolveOptions(GetParam().draft).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(status).reason, "OPTIONS_INVALID");
  ASSERT_THAT(Paths(status), ElementsAre(GetParam().path)) << status;
  EXPECT_THAT(DetailsOf(status).faults[0].description, HasSubstr(GetParam().says));
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

INSTANTIATE_TEST_SUITE_P(
    Rules, BadOptionsTest,
    ::testing::ValuesIn(std::vector<BadOptions>{
        {"OneStep", {.steps_per_worker = 1}, "steps_per_worker", "1 is not from 2 to 10000000"},
        {"ManySteps", {.steps_per_worker = 10'000'001}, "steps_per_worker", "10000001"},
        {"NegativeWarmUp", {.warmup_steps = -1}, "warmup_steps", "-1 is not from 0 to 998"},
        {"AllWarmUp",
         {.steps_per_worker = 60, .warmup_steps = 59},
         "warmup_steps",
         "59 is not from 0 to 58"},
        {"NoReplication", {.replications = 0}, "replications", "0 is not from 1 to 1000"},
        {"ManyReplications", {.replications = 1001}, "replications", "1001"},
        {"NegativePrecision", {.relative_precision = -0.1}, "relative_precision", "-0.1"},
        {"NanPrecision", {.relative_precision = kNan}, "relative_precision", "nan"},
        {"NoBudget", {.time_budget_seconds = 0}, "time_budget", "0 is not"},
        {"NegativeBudget", {.time_budget_seconds = -2}, "time_budget", "-2 is not"},
        {"EndlessBudget", {.time_budget_seconds = kInfinity}, "time_budget", "inf"},
        {"StepsOfNoHorizon",
         {.horizon_steps = 10},
         "horizon_steps",
         "10 has no effect without FIRST_STEPS"},
        {"SecondsOfNoHorizon",
         {.horizon_seconds = 10},
         "horizon_seconds",
         "10 has no effect without FIRST_SECONDS"},
        {"HorizonWithoutSteps",
         {.horizon = Horizon::kFirstSteps},
         "horizon_steps",
         "0 is not from 1"},
        {"HorizonWithoutSeconds",
         {.horizon = Horizon::kFirstSeconds},
         "horizon_seconds",
         "0 is not"},
        {"SecondsOfAnotherHorizon",
         {.horizon = Horizon::kFirstSteps, .horizon_steps = 5, .horizon_seconds = 1},
         "horizon_seconds",
         "no effect"},
        {"LowLevel",
         {.confidence_level = 0.49},
         "confidence_level",
         "0.49 is not from 0.5 to 0.999"},
        {"HighLevel", {.confidence_level = 1}, "confidence_level", "1 is not"},
    }),
    [](const auto& bad) { return bad.param.title; });

TEST(SimulationOptionsTest, EveryFaultIsReportedAtOnce) {
  const absl::Status status = ResolveOptions({.steps_per_worker = 0,
                                              .warmup_steps = -1,
                                              .replications = -1,
                                              .horizon_steps = 5,
                                              .confidence_level = 2})
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Paths(status), ElementsAre("steps_per_worker", "warmup_steps", "replications",
                                         "confidence_level", "horizon_steps"));
}

TEST(SimulationOptionsTest, AHorizonSaysHowLongRunsAreSoStepsMayNotBeGiven) {
  const absl::Status status = ResolveOptions({.steps_per_worker = 100,
                                              .warmup_steps = 3,
                                              .horizon = Horizon::kFirstSteps,
                                              .horizon_steps = 5})
                                  .status();
  EXPECT_THAT(Paths(status), ElementsAre("steps_per_worker", "warmup_steps"));
  EXPECT_TRUE(ResolveOptions({.horizon = Horizon::kFirstSteps, .horizon_steps = 5}).ok());
  EXPECT_TRUE(ResolveOptions({.horizon = Horizon::kFirstSeconds, .horizon_seconds = 0.5}).ok());
}

TEST(SimulationOptionsTest, FirstSecondsEndBeforeSimulatedTimeDoes) {
  for (const double seconds : {0.0, -1.0, 1e6 + 1, std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity()}) {
    const absl::Status status =
        ResolveOptions({.horizon = Horizon::kFirstSeconds, .horizon_seconds = seconds}).status();
    EXPECT_THAT(Paths(status), ElementsAre("horizon_seconds")) << seconds;
  }
  EXPECT_TRUE(ResolveOptions({.horizon = Horizon::kFirstSeconds, .horizon_seconds = 1e6}).ok());
}

TEST(SimulationOptionsTest, WarmupIsAutomaticUnlessAskedFor) {
  EXPECT_TRUE(ResolveOptions({})->automatic_warmup);
  EXPECT_FALSE(ResolveOptions({.warmup_steps = 50})->automatic_warmup);
}

}  // namespace
}  // namespace stepcast::simulation_options_test
