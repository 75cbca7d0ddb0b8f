#include "core/recommend/recommendation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/predict/throughput.h"
#include "core/zoo/model_zoo.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/predict/example_profiles.h"
#include "tests/core/predict/kept_runs.h"
#include "tests/support/repetitions.h"

namespace stepcast::recommendation_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Recommendation Recommend(const Profile& profile, RecommendationDraft draft) {
  if (!draft.options.steps_per_worker.has_value()) draft.options.steps_per_worker = 20;
  // Workers that wait for each other at every step have one throughput, however they start.
  if (!draft.scenario.servers().synchronization.has_value())
    draft.scenario.servers().synchronization = Synchronization::kSynchronous;
  const absl::StatusOr<RecommendationQuery> query = ResolveRecommendation(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  const absl::StatusOr<Recommendation> recommendation =
      RecommendWorkers(profile, *query, NeverStop);
  EXPECT_TRUE(recommendation.ok()) << recommendation.status();
  return *recommendation;
}

// Of the first ten steps, which every prediction warns of.
Recommendation RecommendTheBeginning(const Profile& profile, RecommendationDraft draft) {
  draft.options = {.horizon = Horizon::kFirstSteps, .horizon_steps = 10};
  const absl::StatusOr<RecommendationQuery> query = ResolveRecommendation(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  return RecommendWorkers(profile, *query, NeverStop).value();
}

std::vector<std::string> FaultFields(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
  return fields;
}

// A download of 1 ms and a computation of 8. W workers that wait for each other take W ms for their
// downloads and 8 to compute, so throughput is W / (W + 8) and efficiency 9 / (W + 8); throughput^2
// / W is greatest at W = 8.
Profile OneToEight() { return testing::DownloadThenCompute(1'000'000, 8'000'000); }

// One parameter, which workers may also meet over in an all-reduce.
Profile OneGradient() {
  testing::JobBuilder job;
  job.Upload(1'000'000, {job.Compute(8'000'000, {job.Download(1'000'000, {}, 0, "a")})}, 0, "a");
  return job.Build();
}

ScenarioDraft OnNodesOfEight() {
  return {.communication =
              AllReduceDraft{.workers_per_node = 8, .intra_node_bandwidth_bytes_per_second = 1e11}};
}

TEST(RecommendWorkersTest, AShortCurveIsTriedWhole) {
  const Recommendation recommendation = Recommend(OneToEight(), {.max_workers = 8});
  ASSERT_EQ(recommendation.frontier.size(), 8u);
  for (int32_t workers = 1; workers <= 8; ++workers) {
    const Prediction& prediction = recommendation.frontier[static_cast<size_t>(workers) - 1];
    EXPECT_EQ(prediction.scenario.workers, workers);
    EXPECT_NEAR(prediction.steps_per_second, 1000.0 * workers / (workers + 8), 1e-6);
    EXPECT_NEAR(prediction.scaling_efficiency, 9.0 / (workers + 8), 1e-9);
  }
  EXPECT_EQ(recommendation.untried_gain_bound, 0);
}

// A step of 1 ms and an update of 100 ms, of which each of W workers makes a share: more are always
// better, and no bound of fewer may rule them out.
TEST(RecommendWorkersTest, SharedUpdatesRuleNoLargerNumberOut) {
  testing::JobBuilder job;
  const int32_t gradient = job.Upload(4, {job.Compute(1'000'000)}, 0, "a");
  job.Compute(100'000'000, {gradient});
  const RecommendationDraft draft{
      .scenario = {.communication =
                       AllReduceDraft{.latency_seconds = 0, .sharding = Sharding::kOptimizer}},
      .objective = Objective::kMaxThroughput,
      .max_workers = 64};
  const Recommendation recommendation = RecommendTheBeginning(job.Build(), draft);
  EXPECT_EQ(recommendation.workers, 64);
  EXPECT_NEAR(recommendation.prediction->steps_per_second, 64 / 0.0025625, 5);
}

// All eight are tried, and the least of what is told of them is chosen, but for a tie.
TEST(RecommendWorkersTest, WithFailuresTheLeastExpectedTimeOrCostIsChosen) {
  constexpr double kLossOfATie = 0.02;
  int fewer = 0;
  for (uint64_t seed = 0; seed < testing::Repetitions(60u); ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed, 33});
    const Profile profile = testing::NetworkProfile(seed, {.layers = 4, .steps = 1});
    RecommendationDraft draft{
        .max_workers = 8,
        .examples = 1'000'000,
        .prices = MachinePrices{.worker_hour = 1, .parameter_server_hour = 3 * random.Unit()},
        .failures = Failures{.worker_seconds_between = 60 + 2000 * random.Unit(),
                             .checkpoint_seconds = 1 + 20 * random.Unit(),
                             .restart_seconds = 60}};
    draft.objective = Objective::kMaxThroughput;
    const int32_t most = Recommend(profile, draft).workers;
    for (const Objective objective : {Objective::kMinTime, Objective::kMinCost}) {
      draft.objective = objective;
      const Recommendation found = Recommend(profile, draft);
      ASSERT_EQ(found.frontier.size(), 8u);
      double least = std::numeric_limits<double>::infinity();
      double chosen = 0;
      for (size_t i = 0; i < found.frontier.size(); ++i) {
        const Outcome& outcome = found.outcomes[i];
        const double told =
            objective == Objective::kMinTime ? *outcome.duration_seconds : *outcome.cost;
        least = std::min(least, told);
        if (found.frontier[i].scenario.workers == found.workers) chosen = told;
      }
      EXPECT_GE(chosen, least);
      EXPECT_LE(chosen, least / (1 - kLossOfATie));
      fewer += objective == Objective::kMinTime && found.workers < most ? 1 : 0;
    }
  }
  EXPECT_GT(fewer, static_cast<int>(testing::Repetitions(60u)) / 4);
}

TEST(RecommendWorkersTest, OfALongOneWhatCouldWinIsTriedInAscendingOrder) {
  const Recommendation recommendation = Recommend(OneToEight(), {.max_workers = 200});
  EXPECT_EQ(recommendation.workers, 8);
  EXPECT_EQ(recommendation.choices, 200);
  EXPECT_LT(recommendation.frontier.size(), 30u);
  EXPECT_EQ(recommendation.outcomes.size(), recommendation.frontier.size());
  for (size_t i = 1; i < recommendation.frontier.size(); ++i) {
    EXPECT_LT(recommendation.frontier[i - 1].scenario.workers,
              recommendation.frontier[i].scenario.workers);
  }
}

TEST(RecommendWorkersTest, TheChosenOneIsWhatPredictThroughputSaysOfIt) {
  const Profile profile = testing::NetworkProfile(3, {.layers = 4, .steps = 5});
  const RecommendationDraft draft{.options = {.steps_per_worker = 60, .replications = 5},
                                  .max_workers = 24};
  const Prediction chosen = *Recommend(profile, draft).prediction;
  const ThroughputQuery query{.scenarios = {chosen.scenario},
                              .options = ResolveRecommendation(profile, draft).value().options};
  const Prediction predicted = PredictThroughput(profile, query, NeverStop).value().predictions[0];
  EXPECT_EQ(chosen.examples_per_second, predicted.examples_per_second);
  EXPECT_EQ(chosen.confidence_interval.lower, predicted.confidence_interval.lower);
  EXPECT_EQ(chosen.warnings, predicted.warnings);
  EXPECT_EQ(chosen.replications, 5);
}

// Rows as a reader compares them.
TEST(RecommendWorkersTest, EveryRowThatIsShownIsWhatPredictThroughputSaysOfIt) {
  const Profile profile = testing::NetworkProfile(3, {.layers = 4, .steps = 5});
  const RecommendationDraft draft{.options = {.steps_per_worker = 60, .replications = 5}};
  const Recommendation recommendation = Recommend(profile, draft);
  ThroughputQuery query{.scenarios = {},
                        .options = ResolveRecommendation(profile, draft).value().options};
  for (const Prediction& row : recommendation.frontier) query.scenarios.push_back(row.scenario);
  ASSERT_LT(query.scenarios.size(), 16u);  // else nothing was left out
  const ThroughputAnswer predicted = PredictThroughput(profile, query, NeverStop).value();
  for (size_t i = 0; i < query.scenarios.size(); ++i) {
    SCOPED_TRACE(query.scenarios[i].workers);
    EXPECT_TRUE(recommendation.outcomes[i].in_full);
    EXPECT_EQ(recommendation.frontier[i].examples_per_second,
              predicted.predictions[i].examples_per_second);
    EXPECT_EQ(recommendation.frontier[i].confidence_interval.upper,
              predicted.predictions[i].confidence_interval.upper);
    EXPECT_EQ(recommendation.frontier[i].warnings, predicted.predictions[i].warnings);
  }
}

// AlexNet at 5 Gbit/s: two workers keep in step in some runs, and ten runs left one worker. Its
// objective is 12.5 % less.
TEST(RecommendWorkersTest, AJobOfTwoRegimesIsRunUntilItsMeanIsKnown) {
  const Profile profile =
      BuildZooProfile("alexnet", {.platform = {.bandwidth_bytes_per_second = 625e6}}).value();
  const auto runs_and_choice = [&](const SimulationOptionsDraft& options) {
    RecommendationDraft draft{.options = options};
    draft.options.step_variation = StepSource::kModelled;
    const RecommendationQuery query = ResolveRecommendation(profile, draft).value();
    const Recommendation recommendation = RecommendWorkers(profile, query, NeverStop).value();
    const auto two_workers =
        std::find_if(recommendation.frontier.begin(), recommendation.frontier.end(),
                     [](const Prediction& row) { return row.scenario.workers == 2; });
    return std::pair(two_workers->replications, recommendation.workers);
  };
  EXPECT_EQ(runs_and_choice({}), std::pair(20, 2));
  EXPECT_EQ(runs_and_choice({.replications = 10}).first, 10);
  EXPECT_LT(runs_and_choice({.relative_precision = 0.2}).first, 10);
}

TEST(RecommendWorkersTest, OfManyTriesThoseThatAreClearlyWorseStayTries) {
  testing::JobBuilder job;
  std::vector<int32_t> downloads;
  for (const char* parameter : {"a", "b", "c", "d"})
    downloads.push_back(job.Download(1'000'000, {}, 0, parameter));
  job.Compute(8'000'000, downloads);
  const Recommendation recommendation =
      Recommend(job.Build(), {.max_workers = 64, .max_parameter_servers = 4});
  ASSERT_GT(recommendation.outcomes.size(), 16u);
  const auto tried_only = [](const Outcome& outcome) { return !outcome.in_full; };
  EXPECT_TRUE(
      std::any_of(recommendation.outcomes.begin(), recommendation.outcomes.end(), tried_only));
}

TEST(RecommendWorkersTest, WhatWeakensTheRowsWeakensTheAnswer) {
  const Recommendation recommendation = RecommendTheBeginning(OneToEight(), {.max_workers = 4});
  ASSERT_FALSE(recommendation.frontier[1].warnings.empty()) << "a beginning is no steady state";
  const Warning& one = recommendation.frontier[1].warnings[0];
  EXPECT_EQ(one.reason, Warning::Reason::kFiniteHorizon);
  EXPECT_THAT(
      recommendation.warnings,
      ::testing::Contains(AllOf(Field(&Warning::reason, one.reason),
                                Field(&Warning::message, HasSubstr("workers: " + one.message)))));
}

TEST(RecommendWorkersTest, TheKneeIsWhereThroughputTimesEfficiencyIsGreatest) {
  const Recommendation recommendation = Recommend(OneToEight(), {.objective = Objective::kKnee});
  EXPECT_EQ(recommendation.workers, 8);
  EXPECT_EQ(recommendation.parameter_servers, 1);
  ASSERT_TRUE(recommendation.prediction.has_value());
  EXPECT_NEAR(recommendation.prediction->steps_per_second, 500, 1e-6);
  EXPECT_THAT(
      recommendation.reason,
      HasSubstr("8 workers give 500 examples/s, 4.5 times one worker's at 56 % efficiency"));
  EXPECT_THAT(recommendation.infeasible_reason, IsEmpty());
}

TEST(RecommendWorkersTest, MaxThroughputTakesAllThatHelp) {
  EXPECT_EQ(Recommend(OneToEight(), {.objective = Objective::kMaxThroughput}).workers, 16);
  EXPECT_EQ(
      Recommend(OneToEight(), {.objective = Objective::kMaxThroughput, .max_workers = 12}).workers,
      12);
}

// 9 / (W + 8) >= 0.7 up to W = 4.86.
TEST(RecommendWorkersTest, AMinimumEfficiencyBoundsTheCount) {
  EXPECT_EQ(Recommend(OneToEight(),
                      {.objective = Objective::kMaxThroughput, .min_scaling_efficiency = 0.7})
                .workers,
            4);
  EXPECT_EQ(Recommend(OneToEight(), {.objective = Objective::kKnee, .min_scaling_efficiency = 0.7})
                .workers,
            4);
  EXPECT_EQ(Recommend(OneToEight(), {.objective = Objective::kKnee, .min_scaling_efficiency = 0.5})
                .workers,
            8);
}

// Like workers that start together stay in lockstep, at W / (W + 8); those that do not come near W
// / 9. At 4 workers and more the lockstep's efficiency is below 0.7 (0.69 at 5), that of both is
// not.
TEST(RecommendWorkersTest, OfTwoRegimesTheSlowerAloneDecidesNothing) {
  const Recommendation recommendation = Recommend(
      OneToEight(),
      {.scenario = {.communication =
                        ParameterServersDraft{.synchronization = Synchronization::kAsynchronous}},
       .options = {.steps_per_worker = 200, .start = Start::kSimultaneous},
       .objective = Objective::kMaxThroughput,
       .max_workers = 8,
       .min_scaling_efficiency = 0.7});
  EXPECT_GT(recommendation.workers, 4);
  EXPECT_EQ(recommendation.prediction->regimes.size(), 2u);
  EXPECT_THAT(recommendation.reason, HasSubstr("it has two regimes, "));
}

TEST(RecommendWorkersTest, WhatCannotBeKeptIsSaidWithTheNearestCountAndTheCurve) {
  const Recommendation recommendation =
      Recommend(OneToEight(), {.min_workers = 10, .min_scaling_efficiency = 0.9});
  EXPECT_EQ(recommendation.workers, 0);
  EXPECT_EQ(recommendation.parameter_servers, 0);
  EXPECT_FALSE(recommendation.prediction.has_value());
  EXPECT_THAT(recommendation.reason, IsEmpty());
  EXPECT_EQ(recommendation.infeasible_reason,
            "No number of workers of 10 to 25 keeps a scaling efficiency of 0.9: the nearest, 10 "
            "workers, has 0.5, which is 0.4 too little.");
  EXPECT_EQ(recommendation.frontier.front().scenario.workers, 10);
}

// One worker: 9 ms a step. W workers: (W + 8) / W ms. 1000 examples: 9 s with one, 2 s with 8, 1.5
// s with 16.
TEST(RecommendWorkersTest, TimeAndCostAreThoseOfTheRemainingExamples) {
  const RecommendationDraft draft{
      .objective = Objective::kMinTime,
      .examples = 1000,
      .prices =
          MachinePrices{.worker_hour = 3.6, .parameter_server_hour = 7.2, .currency_code = "EUR"}};
  const Recommendation fastest = Recommend(OneToEight(), draft);
  EXPECT_EQ(fastest.workers, 16);
  EXPECT_NEAR(*fastest.outcome.duration_seconds, 1.5, 1e-9);
  EXPECT_NEAR(*fastest.outcome.cost, 1.5 * (16 * 0.001 + 0.002), 1e-9);
  EXPECT_EQ(fastest.currency_code, "EUR");
  EXPECT_THAT(fastest.reason,
              AllOf(HasSubstr("the least time of 1 to 16; 16 is the largest number asked about"),
                    HasSubstr("; the remaining examples take 1.5 s and cost 0.027 EUR")));
}

// (W + 8) / W x (W + 2): least at W = 4, where 3 x 6 = 18.
TEST(RecommendWorkersTest, TheLeastCostWeighsWorkersAgainstServers) {
  const RecommendationDraft draft{
      .objective = Objective::kMinCost,
      .prices = MachinePrices{.worker_hour = 1, .parameter_server_hour = 2}};
  EXPECT_EQ(Recommend(OneToEight(), draft).workers, 4);
  EXPECT_FALSE(Recommend(OneToEight(), draft).outcome.cost.has_value());
  EXPECT_THAT(Recommend(OneToEight(), draft).reason,
              HasSubstr("the least cost per example of 1 to 16"));
}

TEST(RecommendWorkersTest, ADeadlineAndABudgetNarrowTheChoice) {
  RecommendationDraft draft{
      .objective = Objective::kMinCost,
      .deadline_seconds = 2,
      .examples = 1000,
      .prices = MachinePrices{.worker_hour = 3600, .parameter_server_hour = 0}};
  EXPECT_EQ(Recommend(OneToEight(), draft).workers, 8);
  draft.objective = Objective::kMaxThroughput;
  draft.budget = 12;  // W + 8 <= 12
  draft.deadline_seconds.reset();
  EXPECT_EQ(Recommend(OneToEight(), draft).workers, 4);
}

TEST(RecommendWorkersTest, WhereConstraintsExcludeEachOtherTheNearestChoiceMissesTheLeast) {
  const RecommendationDraft draft{
      .deadline_seconds = 2,
      .examples = 1000,
      .budget = 10,
      .prices =
          MachinePrices{.worker_hour = 3600, .parameter_server_hour = 0, .currency_code = "EUR"}};
  const Recommendation recommendation = Recommend(OneToEight(), draft);
  EXPECT_EQ(recommendation.workers, 0);
  EXPECT_FALSE(recommendation.prediction.has_value());
  // 5 workers: 2.6 s (30 % too long) and 13 (30 % too much); with 4 it is 50 % and 20 %, with 6 a
  // sixth and 40 %.
  ASSERT_TRUE(recommendation.nearest.has_value());
  EXPECT_EQ(recommendation.nearest->prediction.scenario.workers, 5);
  EXPECT_EQ(recommendation.nearest->outcome.broken.size(), 2u);
  EXPECT_EQ(recommendation.infeasible_reason,
            "No number of workers of 1 to 16 keeps the deadline of 2 s and the budget of 10 EUR: "
            "the nearest, 5 workers, takes 2.6 s, which is 0.6 s "
            "too long, and costs 13 EUR, which is 3 EUR too much.");
}

// From 12 to 16 workers 1000 examples gain 1 / 6 s, 10,000 gain 5 / 3.
TEST(RecommendWorkersTest, ARunningJobIsMovedOnlyWhereTheRemainingExamplesPayForIt) {
  RecommendationDraft draft{.objective = Objective::kMaxThroughput,
                            .examples = 1000,
                            .current = CurrentAllocation{.workers = 12, .rescale_seconds = 1}};
  const Recommendation stays = Recommend(OneToEight(), draft);
  EXPECT_EQ(stays.workers, 12);
  EXPECT_THAT(
      stays.reason,
      HasSubstr("; the running job stays as it is, for no change is worth the 1 s that it takes"));
  // Others have more throughput: it is the change that they are not worth.
  EXPECT_THAT(stays.reason, HasSubstr("the highest throughput, what a change takes counted, of 1"));
  draft.examples = 10'000;
  const Recommendation moves = Recommend(OneToEight(), draft);
  EXPECT_EQ(moves.workers, 16);
  EXPECT_NEAR(*moves.outcome.duration_seconds, 16, 1e-9);
  EXPECT_THAT(moves.reason, HasSubstr("; the change from 12 workers takes 1 s of that, and without "
                                      "it the rest would take 16.7 s"));
  draft.examples.reset();
  EXPECT_THAT(Recommend(OneToEight(), draft).reason,
              HasSubstr("cannot be weighed without the remaining examples"));
}

TEST(RecommendWorkersTest, AJobThatRunsBeyondTheDefaultMayStay) {
  RecommendationDraft draft{.objective = Objective::kMaxThroughput,
                            .examples = 1000,
                            .current = CurrentAllocation{.workers = 20, .rescale_seconds = 100}};
  EXPECT_EQ(Recommend(OneToEight(), draft).workers, 20);
  draft.max_workers = 16;
  EXPECT_LE(Recommend(OneToEight(), draft).workers, 16);
}

TEST(RecommendWorkersTest, ARunningJobThatBreaksAConstraintIsMoved) {
  const RecommendationDraft draft{
      .objective = Objective::kMaxThroughput,
      .deadline_seconds = 2,
      .examples = 1000,
      .current = CurrentAllocation{.workers = 4, .rescale_seconds = 0.25}};
  EXPECT_EQ(Recommend(OneToEight(), draft).workers, 16);
}

// A link may be the limit: more workers change nothing: the fewest are as good as all others.
TEST(RecommendWorkersTest, OfWhatIsAsGoodTheFewestWorkersAreTakenOrThoseThatRun) {
  const Profile profile = testing::DownloadThenCompute(4'000'000, 8'000'000);
  RecommendationDraft draft{.options = {.steps_per_worker = 1000},
                            .objective = Objective::kMaxThroughput,
                            .min_workers = 8,
                            .max_workers = 14};
  draft.scenario.servers().synchronization = Synchronization::kAsynchronous;
  draft.options.start = Start::kStaggered;
  draft.options.replications = 3;
  const Recommendation fewest = Recommend(profile, draft);
  EXPECT_EQ(fewest.workers, 8);
  EXPECT_FALSE(fewest.ties.empty());
  draft.current = CurrentAllocation{.workers = 12, .rescale_seconds = 1};
  EXPECT_EQ(Recommend(profile, draft).workers, 12);
}

// Each of two parameters takes a link 4 ms; on two servers they share none.
TEST(RecommendWorkersTest, ServersAreChosenToo) {
  testing::JobBuilder job;
  job.Compute(1'000'000,
              {job.Download(4'000'000, {}, 0, "a"), job.Download(4'000'000, {}, 0, "b")});
  RecommendationDraft draft{
      .objective = Objective::kMaxThroughput, .max_workers = 8, .max_parameter_servers = 3};
  const Recommendation most = Recommend(job.Build(), draft);
  EXPECT_EQ(most.parameter_servers, 2);
  EXPECT_EQ(most.choices, 24);
  EXPECT_THAT(most.reason, HasSubstr("1 to 8 workers and 1 to 3 servers"));
  draft.objective = Objective::kMinCost;
  draft.prices = MachinePrices{.worker_hour = 1, .parameter_server_hour = 1000};
  EXPECT_EQ(Recommend(job.Build(), draft).parameter_servers, 1);
}

TEST(RecommendWorkersTest, AMemoryChangesNothingButTheRunsMade) {
  const Profile profile = testing::NetworkProfile(5, {.layers = 4, .steps = 5});
  testing::KeptRuns memory;
  RecommendationDraft draft{.options = {.steps_per_worker = 60, .replications = 4},
                            .max_workers = 24};
  std::vector<int64_t> recalled;
  int64_t runs = 0;
  for (const Objective objective :
       {Objective::kKnee, Objective::kMaxThroughput, Objective::kKnee}) {
    draft.objective = objective;
    const RecommendationQuery query = ResolveRecommendation(profile, draft).value();
    const Recommendation without = RecommendWorkers(profile, query, NeverStop).value();
    const Recommendation with = RecommendWorkers(profile, query, NeverStop, InOrder(),
                                                 {.memory = &memory, .profile_digest = "d"})
                                    .value();
    EXPECT_EQ(with.workers, without.workers);
    EXPECT_EQ(with.reason, without.reason);
    EXPECT_EQ(with.simulation.simulated_operations, without.simulation.simulated_operations);
    EXPECT_EQ(with.frontier.size(), without.frontier.size());
    recalled.push_back(with.simulation.recalled_runs);
    runs = with.simulation.runs;
  }
  EXPECT_EQ(recalled[0], 0);
  EXPECT_GT(recalled[1], 0);
  EXPECT_EQ(recalled[2], runs);
}

TEST(RecommendWorkersTest, ASpentTimeBudgetLeavesTheBestSoFarOrNoAnswer) {
  const RecommendationQuery query =
      ResolveRecommendation(OneToEight(),
                            {.options = {.steps_per_worker = 500}, .max_workers = 200})
          .value();
  int answers = 0;
  int cut_short = 0;
  for (int allowed = 0; allowed < 400; allowed += 10) {
    int asked = 0;
    const auto stop = [&] { return asked++ < allowed ? absl::OkStatus() : TimeBudgetSpent(); };
    const absl::StatusOr<Recommendation> answer = RecommendWorkers(OneToEight(), query, stop);
    if (!answer.ok()) {
      EXPECT_TRUE(IsTimeBudgetSpent(answer.status()));
      EXPECT_EQ(answers, 0) << "more time must not take an answer away";
      continue;
    }
    ++answers;
    EXPECT_GE(answer->workers, 1);
    if (answer->reason.find("the time budget ended the search") != std::string::npos) ++cut_short;
  }
  EXPECT_GT(answers, 0);
  EXPECT_GT(cut_short, 0);
}

TEST(ResolveRecommendationTest, ByDefaultOneToSixteenOrSixteenCountsFromTheLeast) {
  const auto counts = [](const RecommendationDraft& draft) {
    const RecommendationQuery query = ResolveRecommendation(OneToEight(), draft).value();
    return std::vector<int32_t>{query.min_workers, query.max_workers,
                                static_cast<int32_t>(query.choices())};
  };
  EXPECT_THAT(counts({}), ElementsAre(1, 16, 16));
  EXPECT_THAT(counts({.min_workers = 10}), ElementsAre(10, 25, 16));
  EXPECT_THAT(counts({.min_workers = 4090}), ElementsAre(4090, 4096, 7));
  EXPECT_THAT(counts({.max_workers = 3}), ElementsAre(1, 3, 3));
  EXPECT_THAT(counts({.min_workers = 1, .max_workers = 257}), ElementsAre(1, 257, 257));
  EXPECT_THAT(counts({.max_workers = 4096}), ElementsAre(1, 4096, 4096));
  EXPECT_THAT(counts({.worker_counts = {8, 2, 4, 2}}), ElementsAre(2, 8, 3));
}

TEST(ResolveRecommendationTest, OfMoreThan256NumbersStridesAreLookedAtFirst) {
  const auto first = [](const RecommendationDraft& draft) {
    return ResolveRecommendation(OneToEight(), draft).value().FirstCounts();
  };
  EXPECT_EQ(first({.max_workers = 256}).size(), 256u);
  const std::vector<int32_t> wide = first({.max_workers = 4096});
  EXPECT_EQ(wide.size(), 64u + 6 * 32);
  for (size_t i = 1; i < wide.size(); ++i) {
    const int32_t stride = wide[i] - wide[i - 1];
    EXPECT_LE(stride, std::max(1, wide[i] / 33)) << wide[i];
    EXPECT_EQ(wide[i] % stride, 0);
  }
  // Ends and the running job's are there whatever the strides.
  const std::vector<int32_t> ends =
      first({.min_workers = 3, .max_workers = 1001, .current = CurrentAllocation{.workers = 777}});
  EXPECT_EQ(ends.front(), 3);
  EXPECT_EQ(ends.back(), 1001);
  EXPECT_TRUE(std::binary_search(ends.begin(), ends.end(), 777));
  EXPECT_FALSE(std::binary_search(ends.begin(), ends.end(), 778));
}

TEST(ResolveRecommendationTest, StridesAreOfWholeNodes) {
  const RecommendationQuery query =
      ResolveRecommendation(OneGradient(), {.scenario = OnNodesOfEight(), .max_workers = 4096})
          .value();
  EXPECT_EQ(query.LargestStride(), 8 * 8);
  EXPECT_EQ(query.StridesBegin(), 8 * 64);
  const std::vector<int32_t> counts = query.FirstCounts();
  EXPECT_LE(counts.size(), 256u);
  for (const int32_t count : counts) EXPECT_TRUE(query.IsCandidate(count)) << count;
  EXPECT_TRUE(std::binary_search(counts.begin(), counts.end(), 504));
  EXPECT_FALSE(std::binary_search(counts.begin(), counts.end(), 520));
}

// With a download of 1 ms, W workers that wait for each other make W / (W + c) steps a second, c ms
// of computation: of one peak for every objective.
TEST(StridesTest, FindWhatLookingAtEveryNumberFinds) {
  for (uint64_t seed = 0; seed < testing::Repetitions(6u); ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed});
    const auto compute_ns = static_cast<int64_t>(1'000'000 * (1 + random.Below(500)));
    const Profile profile = testing::DownloadThenCompute(1'000'000, compute_ns);
    RecommendationDraft draft{
        .objective = seed % 2 == 0 ? Objective::kKnee : Objective::kMinCost,
        .max_workers = 300 + static_cast<int32_t>(random.Below(300)),
        .prices = MachinePrices{.worker_hour = 1,
                                .parameter_server_hour = static_cast<double>(random.Below(300))}};
    draft.options.steps_per_worker = 4;
    draft.scenario.servers().synchronization = Synchronization::kSynchronous;
    const Recommendation found = Recommend(profile, draft);
    const RecommendationQuery query = ResolveRecommendation(profile, draft).value();
    ThroughputQuery all{.options = query.options};
    for (int32_t workers = 1; workers <= query.max_workers; ++workers) {
      all.scenarios.push_back(query.server_choices.front());
      all.scenarios.back().workers = workers;
    }
    const ThroughputAnswer every = PredictThroughput(profile, all, NeverStop).value();
    const Weighing weighing(query);
    std::vector<Score> scores;
    for (const Prediction& prediction : every.predictions) {
      scores.push_back(weighing.ScoreOf(
          {prediction.scenario.workers, 1},
          {.examples_per_second = prediction.examples_per_second,
           .one_worker_examples_per_second = every.predictions[0].examples_per_second}));
    }
    const Score best = *std::max_element(scores.begin(), scores.end(),
                                         [](const Score& a, const Score& b) { return a < b; });
    // The curve is flat around its peak, where the runs' chance decides.
    const double value = scores[Index(found.workers) - 1].value;
    EXPECT_GE(value, 0.999 * best.value) << found.reason;
    EXPECT_LT(found.frontier.size(), 60u);
  }
}

TEST(RecommendWorkersTest, OfAListOnlyItsNumbersAreTried) {
  const Recommendation recommendation = Recommend(OneToEight(), {.worker_counts = {16, 2, 5, 11}});
  std::vector<int32_t> tried;
  for (const Prediction& prediction : recommendation.frontier)
    tried.push_back(prediction.scenario.workers);
  EXPECT_THAT(tried, ElementsAre(2, 5, 11, 16));
  const auto merit = [](const Prediction& p) { return p.speedup * p.scaling_efficiency; };
  const auto best = std::max_element(
      recommendation.frontier.begin(), recommendation.frontier.end(),
      [&](const Prediction& a, const Prediction& b) { return merit(a) < merit(b); });
  EXPECT_EQ(recommendation.workers, best->scenario.workers) << recommendation.reason;
  EXPECT_EQ(recommendation.choices, 4);
  EXPECT_THAT(recommendation.reason, HasSubstr("of 2, 5, 11 and 16"));
}

TEST(RecommendWorkersTest, TheEdgeOfWhatWasAskedAboutIsInTheAnswer) {
  const auto edge = [](const RecommendationDraft& draft) {
    return Recommend(OneToEight(), draft).workers_edge;
  };
  EXPECT_EQ(edge({.max_workers = 16}), ChoiceEdge::kNone);
  EXPECT_EQ(edge({.max_workers = 6}), ChoiceEdge::kLargestAsked);
  EXPECT_EQ(edge({.min_workers = 12, .max_workers = 16}), ChoiceEdge::kSmallestAsked);
  EXPECT_EQ(edge({.min_workers = 4, .max_workers = 4}), ChoiceEdge::kOnlyChoice);
  EXPECT_EQ(edge({.worker_counts = {4}}), ChoiceEdge::kOnlyChoice);
  // 9 / (W + 8) of 2 workers is 0.9, of 3 it is 0.82.
  EXPECT_EQ(edge({.min_workers = 2, .max_workers = 5, .min_scaling_efficiency = 0.85}),
            ChoiceEdge::kOnlyFeasible);
}

TEST(ResolveRecommendationTest, RefusesListsThatMakeNoSense) {
  const auto fields = [](const RecommendationDraft& draft) {
    return FaultFields(ResolveRecommendation(OneToEight(), draft).status());
  };
  EXPECT_THAT(fields({.worker_counts = {1, 0, 4097}}),
              ElementsAre("constraints.worker_counts[1]", "constraints.worker_counts[2]"));
  EXPECT_THAT(fields({.min_workers = 1, .worker_counts = {1, 2}}),
              ElementsAre("constraints.worker_counts"));
  EXPECT_THAT(fields({.max_workers = 2, .worker_counts = {1, 2}}),
              ElementsAre("constraints.worker_counts"));
  EXPECT_THAT(fields({.worker_counts = std::vector<int32_t>(257, 1)}),
              ElementsAre("constraints.worker_counts"));
  const RecommendationDraft nodes{.scenario = OnNodesOfEight(), .worker_counts = {8, 12, 16}};
  EXPECT_THAT(FaultFields(ResolveRecommendation(OneGradient(), nodes).status()),
              ElementsAre("constraints.worker_counts[1]"));
}

TEST(ResolveRecommendationTest, RefusesCountsThatMakeNoSense) {
  const auto fields = [](const RecommendationDraft& draft) {
    const absl::Status status = ResolveRecommendation(OneToEight(), draft).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(DetailsOf(status).reason, "RECOMMENDATION_INVALID");
    return FaultFields(status);
  };
  EXPECT_THAT(fields({.min_workers = 0}), ElementsAre("constraints.min_workers"));
  EXPECT_THAT(fields({.min_workers = 4097}), ElementsAre("constraints.min_workers"));
  EXPECT_THAT(fields({.min_workers = std::numeric_limits<int32_t>::max()}),
              ElementsAre("constraints.min_workers"));
  EXPECT_THAT(fields({.min_workers = std::numeric_limits<int32_t>::min(),
                      .max_workers = std::numeric_limits<int32_t>::max()}),
              ElementsAre("constraints.min_workers", "constraints.max_workers"));
  EXPECT_THAT(fields({.max_workers = 0}), ElementsAre("constraints.max_workers"));
  EXPECT_THAT(fields({.max_workers = 4097}), ElementsAre("constraints.max_workers"));
  EXPECT_THAT(fields({.max_workers = std::numeric_limits<int32_t>::max()}),
              ElementsAre("constraints.max_workers"))
      << "nor does it count so far";
  EXPECT_THAT(fields({.min_workers = 5, .max_workers = 4}), ElementsAre("constraints.max_workers"));
  for (const double efficiency :
       {-0.1, 1.1, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(fields({.min_scaling_efficiency = efficiency}),
                ElementsAre("constraints.min_scaling_efficiency"));
  }
}

TEST(ResolveRecommendationTest, ReportsAllFaultsAtOnceWithTheirPaths) {
  RecommendationDraft draft{.min_workers = 9, .max_workers = 8, .min_scaling_efficiency = 2};
  draft.scenario.workers = 4;
  draft.scenario.start_offsets_ns = {0, 0};
  draft.scenario.worker_groups = {{.count = 4}};
  draft.scenario.bandwidth_bytes_per_second = -1;
  draft.options.replications = 0;
  EXPECT_THAT(FaultFields(ResolveRecommendation(OneToEight(), draft).status()),
              UnorderedElementsAre("scenario.workers", "scenario.start_offsets_ns",
                                   "scenario.worker_groups", "scenario.bandwidth_bytes_per_second",
                                   "options.replications", "constraints.max_workers",
                                   "constraints.min_scaling_efficiency"));
}

TEST(ResolveRecommendationTest, RefusesGoalsThatMakeNoSenseOrLackWhatTheyNeed) {
  const auto fields = [](const RecommendationDraft& draft) {
    return FaultFields(ResolveRecommendation(OneToEight(), draft).status());
  };
  const MachinePrices prices{.worker_hour = 1};
  EXPECT_THAT(fields({.objective = Objective::kMinCost}), ElementsAre("prices"));
  EXPECT_THAT(fields({.objective = Objective::kMinCost, .prices = MachinePrices{}}),
              ElementsAre("prices"));
  EXPECT_THAT(fields({.objective = Objective::kMinCost, .prices = prices}), IsEmpty());
  // No choice may cost nothing.
  RecommendationDraft meeting{.objective = Objective::kMinCost,
                              .prices = MachinePrices{.parameter_server_hour = 2}};
  meeting.scenario.communication = AllReduceDraft{};
  EXPECT_THAT(FaultFields(ResolveRecommendation(OneGradient(), meeting).status()),
              ElementsAre("prices.parameter_server_hour"));
  EXPECT_THAT(
      fields({.objective = Objective::kMinCost, .prices = MachinePrices{.worker_hour = 1e-320}}),
      ElementsAre("prices.worker_hour"));
  EXPECT_THAT(fields({.objective = Objective::kMinTime}), IsEmpty());
  EXPECT_THAT(fields({.deadline_seconds = 1}), ElementsAre("constraints.examples"));
  EXPECT_THAT(fields({.deadline_seconds = 0, .examples = 1}), ElementsAre("constraints.deadline"));
  EXPECT_THAT(fields({.deadline_seconds = -1, .examples = 1}), ElementsAre("constraints.deadline"));
  EXPECT_THAT(fields({.examples = 0}), ElementsAre("constraints.examples"));
  EXPECT_THAT(fields({.budget = 1}), UnorderedElementsAre("constraints.examples", "prices"));
  for (const double budget : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(fields({.examples = 1, .budget = budget, .prices = prices}),
                ElementsAre("constraints.budget"));
  }
  for (const double amount : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(
        fields({.prices = MachinePrices{.worker_hour = amount, .parameter_server_hour = amount}}),
        ElementsAre("prices.worker_hour", "prices.parameter_server_hour"));
    EXPECT_THAT(fields({.current = CurrentAllocation{.workers = 1, .rescale_seconds = amount}}),
                ElementsAre("current.rescale_seconds"));
  }
  EXPECT_THAT(fields({.prices = MachinePrices{.currency_code = std::string(17, 'E')}}),
              ElementsAre("prices.currency_code"));
  EXPECT_THAT(fields({.current = CurrentAllocation{.workers = 0, .parameter_servers = 0}}),
              ElementsAre("current.workers", "current.parameter_servers"));
}

TEST(ResolveRecommendationTest, RefusesServersThatCannotBeChosen) {
  testing::JobBuilder unnamed;
  unnamed.Compute(1, {unnamed.Download(1)});
  testing::JobBuilder named;
  named.Compute(1, {named.Download(1, {}, 0, "a")});
  const auto fields = [](const Profile& profile, const RecommendationDraft& draft) {
    return FaultFields(ResolveRecommendation(profile, draft).status());
  };
  EXPECT_THAT(fields(unnamed.Build(), {.max_parameter_servers = 1}), IsEmpty());
  EXPECT_THAT(fields(unnamed.Build(), {.max_parameter_servers = 2}),
              ElementsAre("constraints.max_parameter_servers"));
  EXPECT_THAT(fields(named.Build(), {.max_parameter_servers = 2}), IsEmpty());
  EXPECT_THAT(fields(named.Build(), {.max_parameter_servers = 0}),
              ElementsAre("constraints.max_parameter_servers"));
  EXPECT_THAT(fields(named.Build(), {.max_parameter_servers = 257}),
              ElementsAre("constraints.max_parameter_servers"));
  EXPECT_THAT(fields(named.Build(), {.max_workers = 200, .max_parameter_servers = 21}),
              ElementsAre("constraints.max_parameter_servers"));
  EXPECT_THAT(
      fields(named.Build(), {.scenario = {.communication = ParameterServersDraft{.servers = 1}},
                             .max_parameter_servers = 2}),
      ElementsAre("scenario.parameter_servers.servers"));
}

TEST(RecommendWorkersTest, StopsWhenTold) {
  const RecommendationQuery query =
      ResolveRecommendation(OneToEight(), {.options = {.steps_per_worker = 100'000}}).value();
  EXPECT_EQ(
      RecommendWorkers(OneToEight(), query, [] { return absl::CancelledError("enough"); }).status(),
      absl::CancelledError("enough"));
}

}  // namespace
}  // namespace stepcast::recommendation_test
