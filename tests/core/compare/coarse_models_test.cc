#include "core/compare/coarse_models.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/predict/replications.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::coarse_models_test {
namespace {

TEST(ClosedNetworkTest, OneWorkerTakesTheSumOfItsPhases) {
  const std::vector<double> rates = ClosedNetworkStepsPerSecond(
      {.downlink = 0.1, .worker = 0.3, .uplink = 0.05, .parameter_server = 0.05}, 1);
  ASSERT_EQ(rates.size(), 1U);
  EXPECT_DOUBLE_EQ(rates[0], 2);
}

// By hand: one link of 1 s and computations of 1 s. With one worker it is on the link half of the
// time, so a second one finds 1.5 there: 2 / (1 + 1.5). Of those it has 1.2 on the link: 3 / (1
// + 2.2).
TEST(ClosedNetworkTest, AWorkerFindsOnALinkWhatOneWorkerLessLeavesThere) {
  const std::vector<double> rates = ClosedNetworkStepsPerSecond({.downlink = 1, .worker = 1}, 3);
  EXPECT_DOUBLE_EQ(rates[0], 0.5);
  EXPECT_DOUBLE_EQ(rates[1], 2 / 2.5);
  EXPECT_DOUBLE_EQ(rates[2], 3 / 3.2);
}

TEST(ClosedNetworkTest, ManyWorkersSaturateTheLongerLinkPhase) {
  const std::vector<double> rates = ClosedNetworkStepsPerSecond(
      {.downlink = 0.02, .worker = 0.3, .uplink = 0.05, .parameter_server = 0.01}, 4096);
  for (const double rate : rates) EXPECT_LT(rate, 1 / 0.05 * (1 + 1e-12));
  EXPECT_NEAR(rates.back(), 1 / 0.05, 1e-6);
}

TEST(ClosedNetworkTest, WithoutLinksWorkersAddUp) {
  EXPECT_DOUBLE_EQ(ClosedNetworkStepsPerSecond({.worker = 0.25}, 7).back(), 28);
}

// The stationary probability of k workers on the downlink, m on the uplink and the rest computing
// is proportional to down^k up^m Z^rest / rest!.
double RateBySummation(const PhaseSeconds& phases, int32_t workers) {
  const auto weights = [&](int32_t count) {
    double sum = 0;
    for (int32_t k = 0; k <= count; ++k) {
      for (int32_t m = 0; k + m <= count; ++m) {
        double weight = 1;
        for (int32_t i = 0; i < k; ++i) weight *= phases.downlink;
        for (int32_t i = 0; i < m; ++i) weight *= phases.uplink;
        for (int32_t i = 1; i <= count - k - m; ++i)
          weight *= (phases.worker + phases.parameter_server) / i;
        sum += weight;
      }
    }
    return sum;
  };
  return weights(workers - 1) / weights(workers);
}

TEST(ClosedNetworkTest, AgreesWithTheSumOverAllStates) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 1});
    const PhaseSeconds phases{.downlink = random.Unit(),
                              .worker = random.Unit() * 3,
                              .uplink = random.Unit(),
                              .parameter_server = random.Unit() * 0.1};
    const std::vector<double> rates = ClosedNetworkStepsPerSecond(phases, 12);
    for (int32_t workers = 1; workers <= 12; ++workers) {
      const double expected = RateBySummation(phases, workers);
      EXPECT_NEAR(rates[static_cast<size_t>(workers) - 1], expected, expected * 1e-9)
          << workers << " workers";
    }
  }
}

// T_P = 0.6 s, T_C = 0.2 s: U_1 = 0.4 / 1.0.
constexpr CynthiaInputs kInputs{.computation_seconds = 0.6, .transfer_seconds = 0.2};

TEST(CynthiaTest, OneWorkerComputesAndTransfersOneAfterTheOther) {
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond(kInputs, 1), 1);
}

TEST(CynthiaTest, UtilizationIsTheLinksPartOfAStep) {
  EXPECT_DOUBLE_EQ(kInputs.NetworkUtilization(), 0.4);
}

TEST(CynthiaTest, UpToAFullLinkWorkersAddUp) {
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond(kInputs, 2), 2);
}

TEST(CynthiaTest, BeyondAFullLinkComputationIsStretched) {
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond(kInputs, 5), 5 / (0.6 * 2 + 0.4));
}

TEST(CynthiaTest, ManyWorkersTendToTheComputationOverUtilization) {
  EXPECT_NEAR(CynthiaStepsPerSecond(kInputs, 1'000'000'000), 1 / (0.6 * 0.4), 1e-6);
}

// Half of T_C is 0.1 s: U_1 = 0.2 / 0.8, so five workers fill the link one and a quarter times.
TEST(CynthiaTest, HalvingChangesTheUtilizationToo) {
  const CynthiaInputs halved = kInputs.Halved();
  EXPECT_DOUBLE_EQ(halved.NetworkUtilization(), 0.25);
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond(halved, 1), 1 / 0.8);
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond(halved, 5), 5 / (0.6 * 1.25 + 0.2));
}

TEST(CynthiaTest, OfSeveralServersTheBusiestIsUtilized) {
  CynthiaInputs inputs = kInputs;
  inputs.busiest_server_share = 0.75;
  EXPECT_DOUBLE_EQ(inputs.NetworkUtilization(), 0.3);
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond(inputs, 3), 3);
}

TEST(CynthiaTest, WithoutTransfersWorkersAddUp) {
  EXPECT_DOUBLE_EQ(CynthiaStepsPerSecond({.computation_seconds = 0.5}, 6), 12);
}

using testing::JobBuilder;

CoarseProfile Measured(const Profile& profile, const ScenarioDraft& draft = {}) {
  const absl::StatusOr<CoarseProfile> coarse =
      MeasureCoarseProfile(profile, testing::Resolved(profile, draft), NeverStop);
  EXPECT_TRUE(coarse.ok()) << coarse.status();
  return coarse.value_or(CoarseProfile{});
}

TEST(CoarseProfileTest, AChainsPhasesAreItsOperations) {
  JobBuilder job;
  job.Update(30, {job.Upload(700, {job.Compute(500, {job.Download(1000)})})});
  const CoarseProfile coarse = Measured(job.Build());
  EXPECT_DOUBLE_EQ(coarse.phases.downlink, 1000e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.worker, 500e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.uplink, 700e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.parameter_server, 30e-9);
  EXPECT_DOUBLE_EQ(coarse.cynthia.computation_seconds, 500e-9);
  EXPECT_DOUBLE_EQ(coarse.cynthia.transfer_seconds, 850e-9);
  EXPECT_EQ(coarse.cynthia.busiest_server_share, 1);
}

// Downloads of 100 and 400; computations of 250 after each: the first runs from 100 to 350, the
// second from 500 to 750. Its upload of 10 starts at 350.
TEST(CoarseProfileTest, AnUploadDuringTheDownloadsCountsFromTheirEnd) {
  JobBuilder job;
  const int32_t first = job.Download(100);
  const int32_t second = job.Download(400);
  job.Upload(10, {job.Compute(250, {first})});
  job.Upload(50, {job.Compute(250, {second})});
  const CoarseProfile coarse = Measured(job.Build());
  EXPECT_DOUBLE_EQ(coarse.phases.downlink, 500e-9);
  EXPECT_EQ(coarse.phases.worker, 0);
  EXPECT_DOUBLE_EQ(coarse.phases.uplink, 300e-9);  // gaps and all: from 500 to 800
  EXPECT_EQ(coarse.phases.parameter_server, 0);
  EXPECT_DOUBLE_EQ(coarse.cynthia.computation_seconds, 500e-9);
}

// A worker that computes before its transfers and applies what came back; no server computes.
TEST(CoarseProfileTest, WhatLiesBeforeAndBehindAllTransfersIsTheWorkers) {
  JobBuilder job;
  const int32_t upload = job.Upload(700, {job.Compute(500)}, 0, "w");
  job.Compute(60, {job.Download(1000, {upload}, 0, "w")});
  const CoarseProfile coarse = Measured(job.Build());
  EXPECT_DOUBLE_EQ(coarse.phases.worker, 560e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.downlink, 1700e-9);
  EXPECT_EQ(coarse.phases.parameter_server, 0);
}

TEST(CoarseProfileTest, WithoutUploadsTheWorkerComputesToTheEnd) {
  JobBuilder job;
  job.Compute(500, {job.Download(1000)});
  const CoarseProfile coarse = Measured(job.Build());
  EXPECT_DOUBLE_EQ(coarse.phases.worker, 500e-9);
  EXPECT_EQ(coarse.phases.uplink, 0);
}

TEST(CoarseProfileTest, PhasesAreMeansOverTheRecordedSteps) {
  JobBuilder job;
  job.Upload(700, {job.Compute({500, 900, 2100}, {job.Download(1000)})});
  const CoarseProfile coarse = Measured(job.Build());
  EXPECT_DOUBLE_EQ(coarse.phases.downlink, 1000e-9);
  EXPECT_NEAR(coarse.phases.worker, 3500e-9 / 3, 1e-15);
  EXPECT_NEAR(coarse.cynthia.computation_seconds, 3500e-9 / 3, 1e-15);
}

TEST(CoarseProfileTest, TheScenariosBandwidthAndParsingCount) {
  JobBuilder job;
  job.Upload(700, {job.Compute(500, {job.Download(1000)})});
  const CoarseProfile coarse =
      Measured(job.Build(), {.bandwidth_bytes_per_second = 2e9,
                             .communication = ParameterServersDraft{
                                 .parsing_overhead = ParsingOverhead{.seconds = 100e-9}}});
  EXPECT_DOUBLE_EQ(coarse.phases.downlink, 500e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.worker, 600e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.uplink, 350e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.parameter_server, 100e-9);
  EXPECT_DOUBLE_EQ(coarse.cynthia.computation_seconds, 600e-9);
  EXPECT_DOUBLE_EQ(coarse.cynthia.transfer_seconds, 425e-9);
}

TEST(CoarseProfileTest, OfTwoServersTheOneWithMoreBytesIsTheBusiest) {
  JobBuilder job;
  const int32_t compute = job.Compute(500, {job.Download(100, {}, 0), job.Download(300, {}, 1)});
  job.Upload(100, {compute}, 0);
  job.Upload(300, {compute}, 1);
  EXPECT_DOUBLE_EQ(Measured(job.Build()).cynthia.busiest_server_share, 0.75);
}

TEST(CoarseProfileTest, ThePhasesOfAnyJobAddUpToItsSteps) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Profile profile = testing::MakeRandomCase(seed).profile;
    const Scenario scenario = testing::Resolved(profile);
    const auto ranked = RankedGraph::Make(profile, scenario, NeverStop);
    const absl::StatusOr<RecordedRun> run =
        RunRecordedSteps(profile, scenario, **ranked, nullptr, NeverStop);
    ASSERT_TRUE(run.ok()) << run.status();
    const CoarseProfile coarse = Measured(profile);
    const double expected = ToSeconds(run->length) / static_cast<double>(profile.steps().size());
    EXPECT_NEAR(coarse.phases.Sum(), expected, expected * 1e-9);
    for (const double phase : {coarse.phases.downlink, coarse.phases.worker, coarse.phases.uplink,
                               coarse.phases.parameter_server}) {
      EXPECT_GE(phase, 0);
    }
  }
}

double StepsPerSecond(const Profile& profile, int32_t workers, const ScenarioDraft& draft = {}) {
  const absl::StatusOr<CoarseTensorsAnswer> answer =
      PredictByCoarseTensors(profile, testing::Resolved(profile, draft), workers, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(CoarseTensorsAnswer{}).steps_per_second;
}

Profile Chain() {
  JobBuilder job;
  job.Upload(700, {job.Compute(500, {job.Download(1000)})});
  return job.Build();
}

TEST(CoarseTensorsTest, OneWorkerIsAsRecorded) {
  EXPECT_DOUBLE_EQ(StepsPerSecond(Chain(), 1), 1e9 / 2200);
}

TEST(CoarseTensorsTest, EachOfSeveralWorkersHasItsPartOfTheLink) {
  EXPECT_DOUBLE_EQ(StepsPerSecond(Chain(), 3), 3 * 1e9 / (500 + 3 * 1700));
}

// Never more than one worker's transfers allow; a chain sends and receives in turn, so it stays
// below the capacity of either direction.
TEST(CoarseTensorsTest, ManyWorkersSaturateTheLink) {
  EXPECT_NEAR(StepsPerSecond(Chain(), 4096), 1e9 / 1700, 1e9 / 1700 * 1e-3);
}

TEST(CoarseTensorsTest, TransfersOverlapWithComputation) {
  JobBuilder job;
  const int32_t first = job.Compute(1000, {job.Download(100)});
  job.Compute(50, {job.Download(800), first});
  EXPECT_DOUBLE_EQ(StepsPerSecond(job.Build(), 1), 1e9 / 1150);
}

TEST(CoarseTensorsTest, ParsingAndSwitchingAreNotModelled) {
  const ScenarioDraft draft{
      .communication = ParameterServersDraft{.parsing_overhead = ParsingOverhead{.seconds = 1e-6},
                                             .multiplexing = WindowDraft{.bytes = 10}}};
  EXPECT_DOUBLE_EQ(StepsPerSecond(Chain(), 2, draft), StepsPerSecond(Chain(), 2));
}

// Two servers' links carry half as much each; the worker's own link is 1e9 bytes per second, which
// four workers' parts of two links do not fill.
TEST(CoarseTensorsTest, OfSeveralServersEachGivesAPart) {
  JobBuilder job;
  job.Compute(500, {job.Download(1000, {}, 0), job.Download(1000, {}, 1)});
  EXPECT_DOUBLE_EQ(StepsPerSecond(job.Build(), 4), 4 * 1e9 / 4500);
}

}  // namespace
}  // namespace stepcast::coarse_models_test
