#include "core/compare/coarse_models.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/base/stop_check.h"
#include "core/predict/replications.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::coarse_models_test {
namespace {

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
