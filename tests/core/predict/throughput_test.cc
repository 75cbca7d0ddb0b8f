#include "core/predict/throughput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::throughput_test {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using testing::JobBuilder;
using ::testing::SizeIs;

ThroughputAnswer Predicted(const Profile& profile, const ThroughputDraft& draft) {
  const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  const absl::StatusOr<ThroughputAnswer> answer = PredictThroughput(profile, *query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(ThroughputAnswer{});
}

Profile RandomSteps() {
  JobBuilder job;
  job.Upload(700, {job.Compute({500, 900, 2100}, {job.Download(1000)})});
  return job.Build();
}

// Everything after one another, so that no delay of one thing can be the gain of another.
Profile RandomChain(uint64_t seed) {
  Random random({seed, 41});
  JobBuilder job;
  int32_t last = -1;
  for (uint64_t i = 0; i < 3 + random.Below(8); ++i) {
    const JobBuilder::Waits waits = last < 0 ? JobBuilder::Waits{} : JobBuilder::Waits{last};
    const auto size = static_cast<int64_t>(1 + random.Below(100'000));
    const uint64_t kind = random.Below(4);
    last = kind == 0   ? job.Download(size, waits)
           : kind == 1 ? job.Upload(size, waits)
           : kind == 2 ? job.Compute(size, waits)
                       : job.Update(size, waits);
  }
  return job.Build();
}

TEST(ThroughputTest, OneWorkerHasASpeedupOfOne) {
  const ThroughputAnswer answer =
      Predicted(RandomSteps(), {.worker_counts = {1}, .options = {.steps_per_worker = 200}});
  EXPECT_EQ(answer.predictions[0].speedup, 1);
  EXPECT_EQ(answer.predictions[0].scaling_efficiency, 1);
}

TEST(ThroughputTest, OneWorkerOnARecordedChainTakesItsSum) {
  JobBuilder job;
  job.Upload(700, {job.Compute(500, {job.Download(1000)})});
  const Prediction prediction =
      Predicted(job.Build(), {.options = {.steps_per_worker = 100}}).predictions[0];
  EXPECT_DOUBLE_EQ(prediction.steps_per_second, 1e9 / 2200);
  EXPECT_NEAR(prediction.step_time.p99, 2200e-9, 2200e-12);
  EXPECT_EQ(prediction.most_used.resource, Resource::kDownlink);
  EXPECT_DOUBLE_EQ(prediction.most_used.fraction, 1000.0 / 2200);
  EXPECT_EQ(prediction.replications, 1);
  EXPECT_EQ(prediction.confidence_interval.lower, prediction.confidence_interval.upper);
}

// Most bytes of one step that cross one server's link in one direction.
int64_t MostBytesOnALink(const Profile& profile) {
  int64_t most = 0;
  for (int32_t server = 0; server < profile.parameter_servers(); ++server) {
    for (const Resource direction : {Resource::kDownlink, Resource::kUplink}) {
      int64_t bytes = 0;
      for (const Operation& operation : profile.operations()) {
        if (operation.resource == direction && operation.parameter_server == server)
          bytes += operation.size_bytes;
      }
      most = std::max(most, bytes);
    }
  }
  return most;
}

TEST(ThroughputTest, NoLinkCarriesMoreThanItsBandwidth) {
  constexpr int32_t kSteps = 120;
  constexpr int32_t kWorkers = 8;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Profile profile = testing::MakeRandomCase(seed).profile;
    const ThroughputDraft draft{.worker_counts = {1, 3, kWorkers},
                                .options = {.steps_per_worker = kSteps, .replications = 1}};
    for (const Prediction& prediction : Predicted(profile, draft).predictions) {
      const double bound = profile.platform().bandwidth_bytes_per_second /
                           static_cast<double>(MostBytesOnALink(profile));
      // A worker's first and last counted steps may lie partly outside the counted time.
      EXPECT_LE(prediction.steps_per_second, bound * (1 + 2 / (0.95 * kSteps)));
    }
  }
}

TEST(ThroughputTest, WorkersOnAChainNeverMakeMoreThanAsManyTimesOne) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const ThroughputAnswer answer = Predicted(
        RandomChain(seed), {.worker_counts = {1, 2, 5, 16}, .options = {.steps_per_worker = 60}});
    for (const Prediction& prediction : answer.predictions)
      EXPECT_LE(prediction.scaling_efficiency, 1 + 1e-9);
  }
}

// Graham's anomaly: alone, the long computation is ready first and holds up the short one that the
// server waits for; when two workers share the link its download comes later and the short one goes
// first. So "W workers make at most W times one" is no rule for every job.
TEST(ThroughputTest, AJobMayGainFromTheDelayThatSharingIs) {
  JobBuilder job;
  job.Compute(10'000, {job.Download(1000)});
  job.Update(10'000, {job.Compute(100, {job.Update(1500)})});
  const ThroughputAnswer answer =
      Predicted(job.Build(), {.worker_counts = {1, 2},
                              .options = {.steps_per_worker = 60, .start = Start::kSimultaneous}});
  EXPECT_DOUBLE_EQ(answer.predictions[0].steps_per_second, 1e9 / 21'100);
  EXPECT_DOUBLE_EQ(answer.predictions[1].steps_per_second, 2e9 / 12'000);
  EXPECT_GT(answer.predictions[1].scaling_efficiency, 1.7);
}

TEST(ThroughputTest, TheSameQueryHasTheSameAnswerAndAnotherSeedAnother) {
  const auto answer = [](uint64_t seed) {
    return Predicted(RandomSteps(),
                     {.worker_counts = {4}, .options = {.steps_per_worker = 100, .seed = seed}})
        .predictions[0]
        .steps_per_second;
  };
  EXPECT_EQ(answer(3), answer(3));
  EXPECT_NE(answer(3), answer(4));
}

// Two servers, the first of which has most bytes, and workers that start together.
ThroughputAnswer OfTwoServers(int32_t workers, const ParameterServersDraft& servers,
                              int32_t second = 1) {
  JobBuilder job;
  const int32_t first = job.Download(4'000'000, {}, 0, "a");
  const int32_t other = job.Download(2'000'000, {}, second, "b");
  const int32_t forward = job.Compute({2'000'000, 3'000'000, 4'000'000}, {first, other});
  job.Upload(2'000'000, {job.Compute({1'000'000, 2'000'000, 3'000'000}, {forward})}, second, "b");
  job.Upload(4'000'000, {forward}, 0, "a");
  return Predicted(job.Build(), {.worker_counts = {workers},
                                 .scenario = ScenarioDraft{.communication = servers}});
}

int WarningsOfSharing(const ThroughputAnswer& answer) {
  const std::vector<Warning>& warnings = answer.predictions.front().warnings;
  return static_cast<int>(
      std::count_if(warnings.begin(), warnings.end(), [](const Warning& warning) {
        return warning.reason == Warning::Reason::kLinkSharingMatters;
      }));
}

TEST(ThroughputTest, SharingOfSeveralServersLinksThatNothingSaysIsWarnedOfWhereItMatters) {
  const ThroughputAnswer answer = OfTwoServers(4, {});
  ASSERT_EQ(WarningsOfSharing(answer), 1);
  const double equal = answer.predictions.front().examples_per_second;
  const double first_come =
      OfTwoServers(4, {.link_sharing = FirstCome{}}).predictions.front().examples_per_second;
  EXPECT_GT(std::abs(first_come / equal - 1), 0.1);
  for (const Warning& warning : answer.predictions.front().warnings) {
    if (warning.reason != Warning::Reason::kLinkSharingMatters) continue;
    EXPECT_THAT(warning.message, HasSubstr("the links of 2 servers"));
    EXPECT_THAT(warning.message, HasSubstr(NumberText(equal) + " examples/s in equal shares"));
    const std::string before = "as predicted, ";
    const double told =
        std::stod(warning.message.substr(warning.message.find(before) + before.size()));
    EXPECT_NEAR(told, first_come, 0.1 * first_come);
  }
  EXPECT_EQ(WarningsOfSharing(OfTwoServers(4, {.link_sharing = EqualShares{}})), 0);
  EXPECT_EQ(WarningsOfSharing(OfTwoServers(1, {})), 0);
  EXPECT_EQ(WarningsOfSharing(OfTwoServers(4, {}, /*second=*/0)), 0);
}

// A barrier a sum is none a step: two workers whose computations overlap, or take turns, do for
// ever.
TEST(ThroughputTest, WorkersWhoseUploadsAreAddedUpRememberTheirStart) {
  JobBuilder job;
  const int32_t download = job.Download(3'000'000, {}, 0, "a");
  job.Upload(3'000'000, {job.Compute(4'000'000, {download})}, 0, "a");
  const Profile profile = job.Build();
  const auto predicted = [&](uint64_t seed, Synchronization synchronization) {
    return Predicted(profile,
                     {.worker_counts = {2},
                      .scenario = ScenarioDraft{.communication =
                                                    ParameterServersDraft{.synchronization =
                                                                              synchronization}},
                      .options = {.seed = seed, .step_variation = StepSource::kAsRecorded}})
        .predictions.front();
  };
  EXPECT_EQ(predicted(1, Synchronization::kSynchronous).replications, 1);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Prediction one = predicted(seed, Synchronization::kSummed);
    EXPECT_GT(one.replications, 1);
    const Prediction other = predicted(seed + 5, Synchronization::kSummed);
    const auto said = [](const Prediction& each) {
      return each.regimes.size() == 2 ||
             each.run_interval.upper - each.run_interval.lower > 0.01 * each.examples_per_second;
    };
    const bool differ = std::abs(one.examples_per_second / other.examples_per_second - 1) > 0.01;
    EXPECT_TRUE(!differ || (said(one) && said(other))) << seed;
  }
}

TEST(ThroughputTest, TheBaselineIsSimulatedOnceForAll) {
  const SimulationOptionsDraft options{.steps_per_worker = 100, .replications = 1};
  const Profile profile = RandomSteps();
  const auto simulation = [&](std::vector<int32_t> counts) {
    return Predicted(profile, {.worker_counts = std::move(counts), .options = options}).simulation;
  };
  const auto runs = [&](std::vector<int32_t> counts) { return simulation(std::move(counts)).runs; };
  EXPECT_EQ(runs({1, 2, 3}), runs({2, 3}));
  EXPECT_EQ(runs({2, 3}), runs({2}) + runs({3}) - runs({1}));
  EXPECT_EQ(simulation({2, 2, 2}).simulated_operations, simulation({2}).simulated_operations);
}

TEST(ThroughputTest, ASpentTimeBudgetLeavesARunOfEachOrNoAnswer) {
  const Profile profile = RandomSteps();
  const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(
      profile,
      {.worker_counts = {1, 2, 4}, .options = {.steps_per_worker = 2000, .replications = 6}});
  ASSERT_TRUE(query.ok());
  int answers = 0;
  int refusals = 0;
  int partial = 0;
  for (int allowed = 0; allowed < 120; allowed += 2) {
    int asked = 0;
    const auto stop = [&] { return asked++ < allowed ? absl::OkStatus() : TimeBudgetSpent(); };
    const absl::StatusOr<ThroughputAnswer> answer = PredictThroughput(profile, *query, stop);
    if (!answer.ok()) {
      EXPECT_TRUE(IsTimeBudgetSpent(answer.status())) << answer.status();
      EXPECT_EQ(answers, 0) << "more time must not take an answer away";
      ++refusals;
      continue;
    }
    ++answers;
    for (const Prediction& prediction : answer->predictions) {
      EXPECT_GE(prediction.replications, 1);
      EXPECT_GT(prediction.steps_per_second, 0);
      partial += prediction.replications < 6 ? 1 : 0;
    }
  }
  EXPECT_GT(answers, 0);
  EXPECT_GT(refusals, 0);
  EXPECT_GT(partial, 0);
}

// Runs parts on threads of its own, whichever is free.
class Threads final : public Executor {
 public:
  explicit Threads(int count) : count_(count) {}
  void ForEach(size_t count, absl::FunctionRef<bool(size_t)> part) const override {
    std::atomic<size_t> next = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < count_; ++i) {
      threads.emplace_back([&] {
        for (size_t mine = next++; mine < count; mine = next++) {
          if (!part(mine)) next = count;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  const int count_;
};

auto Everything(const ThroughputAnswer& answer) {
  std::vector<std::tuple<double, double, double, double, double, double, bool, std::vector<Warning>,
                         int32_t>>
      all;
  for (const Prediction& p : answer.predictions) {
    all.emplace_back(p.examples_per_second, p.confidence_interval.lower,
                     p.confidence_interval.upper, p.step_time.mean, p.step_time.p99,
                     p.exposed_communication_fraction, p.steady_state, p.warnings, p.replications);
  }
  return std::tuple(all, answer.simulation.simulated_operations, answer.simulation.engine_path);
}

TEST(ThroughputTest, TheAnswerIsTheSameOnAnyNumberOfThreads) {
  const Profile profile = RandomSteps();
  for (const double precision : {0.0, 0.01}) {
    const ThroughputDraft draft{.worker_counts = {1, 2, 3, 5, 8, 13},
                                .options = {.steps_per_worker = 200,
                                            .replications = precision > 0 ? 40 : 7,
                                            .relative_precision = precision}};
    const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, draft);
    ASSERT_TRUE(query.ok());
    const auto alone = Everything(*PredictThroughput(profile, *query, NeverStop));
    for (const int threads : {1, 2, 8})
      EXPECT_EQ(Everything(*PredictThroughput(profile, *query, NeverStop, Threads(threads))), alone)
          << threads;
  }
}

TEST(ThroughputTest, TheFirstErrorIsTheSameOnAnyNumberOfThreads) {
  JobBuilder job;
  job.Compute(9000);
  const Profile profile = job.Build();
  // The second of two workers completes but one step in the counted time.
  const ScenarioDraft slow{
      .workers = 2,
      .start_offsets_ns = {0, 10'000},
      .worker_groups = {{.count = 1}, {.count = 1, .compute_speed_factor = 1000}}};
  const absl::StatusOr<ThroughputQuery> query =
      ResolveThroughput(profile, {.scenarios = {{.workers = 3}, slow, {.workers = 2}},
                                  .options = {.steps_per_worker = 2, .warmup_steps = 0}});
  ASSERT_TRUE(query.ok()) << query.status();
  for (const int threads : {1, 8}) {
    EXPECT_EQ(
        DetailsOf(PredictThroughput(profile, *query, NeverStop, Threads(threads)).status()).reason,
        "SIMULATION_TOO_SHORT");
  }
}

// Unlike workers in any order: speed-up is over the one that is fastest alone.
TEST(ThroughputTest, SpeedUpOfUnlikeWorkersIsOverTheFastest) {
  JobBuilder job;
  job.Upload(700, {job.Compute(500, {job.Download(1000)})});
  const Profile profile = job.Build();
  const WorkerGroup slow{.count = 1, .compute_speed_factor = 0.01};
  const WorkerGroup fast{.count = 3, .compute_speed_factor = 2};
  // Faster still, if its link were not so slow.
  const WorkerGroup far{
      .count = 1, .compute_speed_factor = 4, .bandwidth_bytes_per_second = 1e-3 * 1e9};
  for (const std::vector<WorkerGroup>& groups :
       {std::vector{slow, fast, far}, std::vector{far, slow, fast}, std::vector{fast, far, slow}}) {
    const auto query = ResolveThroughput(
        profile,
        {.scenarios = {{.workers = 5, .worker_groups = groups},
                       {.workers = 1, .worker_groups = {{.count = 1, .compute_speed_factor = 2}}}},
         .options = {.steps_per_worker = 200, .start = Start::kSimultaneous}});
    ASSERT_TRUE(query.ok()) << query.status();
    const auto answer = PredictThroughput(profile, *query, NeverStop);
    ASSERT_TRUE(answer.ok()) << answer.status();
    const Prediction& all = answer->predictions[0];
    EXPECT_NEAR(all.speedup, all.steps_per_second / answer->predictions[1].steps_per_second, 1e-9);
    EXPECT_LT(all.scaling_efficiency, 1);
  }
}

// A step takes 2200 ns, of which the link is needed for 1000 down and 700 up.
Profile FixedChain() {
  JobBuilder job;
  job.Upload(700, {job.Compute(500, {job.Download(1000)})});
  return job.Build();
}

TEST(ThroughputTest, FirstStepsCountFromTheStart) {
  const Prediction prediction =
      Predicted(FixedChain(), {.options = {.horizon = Horizon::kFirstSteps, .horizon_steps = 3}})
          .predictions[0];
  EXPECT_DOUBLE_EQ(prediction.steps_per_second, 1e9 / 2200);
  EXPECT_FALSE(prediction.steady_state);
  ASSERT_THAT(prediction.warnings, SizeIs(2));
  EXPECT_EQ(prediction.warnings[1].reason, Warning::Reason::kLinkRateNotMeasured);
  EXPECT_EQ(prediction.warnings[0].reason, Warning::Reason::kFiniteHorizon);
  EXPECT_THAT(prediction.warnings[0].message, HasSubstr("first 3 steps"));
  EXPECT_EQ(prediction.step_time.mean, 2200e-9);
}

TEST(ThroughputTest, FirstSecondsCountWhatEndsInThem) {
  const auto in_ns = [](double ns, int32_t workers) {
    return Predicted(FixedChain(),
                     {.scenarios = {{.workers = workers}},
                      .options = {.horizon = Horizon::kFirstSeconds, .horizon_seconds = ns * 1e-9}})
        .predictions[0];
  };
  EXPECT_NEAR(in_ns(6599, 1).steps_per_second, 2 / 6599e-9, 1);
  EXPECT_NEAR(in_ns(6601, 1).steps_per_second, 3 / 6601e-9, 1);
  EXPECT_THAT(in_ns(6601, 1).warnings.at(0).message, HasSubstr("first 6.601e-06 s"));
  // Together they need 2000 + 500 + 1400 for a step: both end at 3900.
  EXPECT_NEAR(in_ns(4000, 2).steps_per_second, 2 / 4000e-9, 1);
  // Of the link down: two downloads, and of the next ones 100 bytes.
  EXPECT_NEAR(in_ns(4000, 2).utilization[2].fraction, 2100.0 / 4000, 1e-9);
}

// A step more in the counted time: more than the time in which links are in use could bring.
TEST(ThroughputTest, GainsInFirstSecondsAreOfWholeSteps) {
  JobBuilder job;
  job.Upload(1000, {job.Compute(1000, {job.Download(1000)})});
  const Prediction prediction =
      Predicted(job.Build(),
                {.options = {.horizon = Horizon::kFirstSeconds, .horizon_seconds = 10'000e-9}})
          .predictions[0];
  // Three steps of 3000 ns, and five of 2000.
  ASSERT_TRUE(prediction.bottleneck_gain.has_value());
  EXPECT_EQ(prediction.bottleneck_gain->change, WhatIf::kLinksTwiceAsFast);
  EXPECT_NEAR(prediction.bottleneck_gain->gain, 5.0 / 3 - 1, 1e-9);
}

TEST(ThroughputTest, FirstSecondsInWhichNoStepEndsAreAnError) {
  const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(
      FixedChain(), {.options = {.horizon = Horizon::kFirstSeconds, .horizon_seconds = 2000e-9}});
  ASSERT_TRUE(query.ok());
  const absl::Status status = PredictThroughput(FixedChain(), *query, NeverStop).status();
  EXPECT_EQ(DetailsOf(status).reason, "SIMULATION_TOO_SHORT");
  EXPECT_THAT(std::string(status.message()), HasSubstr("horizon_seconds 2e-06"));
}

TEST(ThroughputTest, ACancelledPredictionReturnsTheReason) {
  const Profile profile = RandomSteps();
  const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, {.worker_counts = {2}});
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(
      PredictThroughput(profile, *query, [] { return absl::CancelledError("gone"); }).status(),
      absl::CancelledError("gone"));
}

TEST(ThroughputTest, FaultsCarryThePathsOfTheRequest) {
  const absl::StatusOr<ThroughputQuery> query =
      ResolveThroughput(RandomSteps(), {.worker_counts = {2, 0}, .options = {.replications = 0}});
  ASSERT_FALSE(query.ok());
  EXPECT_EQ(DetailsOf(query.status()).reason, "REQUEST_INVALID");
  for (const char* path : {"worker_counts[1]", "options.replications"}) {
    EXPECT_THAT(DetailsOf(query.status()).faults, Contains(Field(&Fault::field, path)));
  }
}

TEST(ThroughputTest, ScenariosAndWorkerCountsExcludeEachOther) {
  const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(
      RandomSteps(),
      {.scenarios = {{.workers = 2}}, .worker_counts = {2}, .scenario = ScenarioDraft{}});
  ASSERT_FALSE(query.ok());
  for (const char* path : {"worker_counts", "scenario"})
    EXPECT_THAT(DetailsOf(query.status()).faults, Contains(Field(&Fault::field, path)));
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Reason = Warning::Reason;

Prediction With(int32_t workers, std::vector<Warning> warnings) {
  return {.scenario = {.workers = workers}, .warnings = std::move(warnings)};
}

Warning Drifts(const std::string& message = "drifts") {
  return {.reason = Reason::kNotSteady, .message = message};
}

Warning Fixed(const std::string& message = "nothing is random") {
  return {.reason = Reason::kNothingRandom, .message = message};
}

TEST(DistinctWarningsTest, EachIsSaidOnceWithWhatItIsAbout) {
  EXPECT_THAT(WarningsByWorkers({With(1, {Drifts()}), With(2, {Drifts()}), With(3, {}),
                                 With(4, {Drifts()}), With(5, {Fixed()})}),
              ElementsAre(Drifts("1-2, 4 workers: drifts"), Fixed("5 workers: nothing is random")));
}

TEST(DistinctWarningsTest, SeveralOfOnePredictionAreSeveral) {
  EXPECT_THAT(WarningsByWorkers({With(1, {Drifts(), Fixed()}), With(2, {Fixed()})}),
              ElementsAre(Drifts("1 worker: drifts"), Fixed("1-2 workers: nothing is random")));
}

TEST(DistinctWarningsTest, ThoseThatDifferInNumbersAreOneWithTheNumbersOfTheFirst) {
  EXPECT_THAT(WarningsByWorkers({With(1, {Fixed()}), With(2, {Drifts("drifts by 3.5 %")}),
                                 With(3, {Drifts("drifts by 12 %")})}),
              ElementsAre(Fixed("1 worker: nothing is random"),
                          Drifts("2-3 workers, the numbers are those for 2: drifts by 3.5 %")));
}

TEST(DistinctWarningsTest, ThoseOfTwoReasonsAreTwoWhateverTheySay) {
  EXPECT_THAT(WarningsByWorkers({With(1, {Drifts("look 1")}), With(2, {Fixed("look 2")})}),
              ElementsAre(Drifts("1 worker: look 1"), Fixed("2 workers: look 2")));
}

TEST(DistinctWarningsTest, ANumberOfWorkersThatComesAgainIsSaidOnce) {
  EXPECT_THAT(WarningsByWorkers({With(4, {Drifts()}), With(8, {Drifts()}), With(4, {Drifts()})}),
              ElementsAre(Drifts("4, 8 workers: drifts")));
}

TEST(DistinctWarningsTest, NoWarningsAreNone) {
  EXPECT_THAT(WarningsByWorkers({With(4, {}), With(8, {})}), IsEmpty());
  EXPECT_THAT(WarningsByName({"TAC"}, {{}}), IsEmpty());
}

TEST(DistinctWarningsTest, OrdersGoByTheirNames) {
  EXPECT_THAT(WarningsByName({"TAC", "TIC", "GRAPH"}, {{Drifts("a 1")}, {}, {Drifts("a 2")}}),
              ElementsAre(Drifts("TAC, GRAPH, the numbers are those for TAC: a 1")));
}

}  // namespace
}  // namespace stepcast::throughput_test
