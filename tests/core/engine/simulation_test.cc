#include "core/engine/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/program.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::simulation_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::JobBuilder;
using testing::JobFor;
using testing::OptionsFor;
using testing::Resolved;

TEST(CompletionSeriesTest, AMarkIsWhenThatManyStepsHadEndedHoweverManyThereAre) {
  CompletionSeries series;
  for (int64_t i = 1; i <= 50'000; ++i) {
    series.Add(Instant{i * i});
    ASSERT_LT(series.marks().size(), CompletionSeries::kMaxMarks);
    if (i % 997 != 0) continue;
    ASSERT_EQ(static_cast<int64_t>(series.marks().size()), i / series.stride());
    for (size_t k = 0; k < series.marks().size(); ++k) {
      const int64_t steps = static_cast<int64_t>(k + 1) * series.stride();
      ASSERT_EQ(series.marks()[k], Instant{steps * steps}) << i << " " << k;
    }
  }
  EXPECT_EQ(series.stride(), 32);
}

TEST(CompletionSeriesTest, MarksOfStepsThatAllEndFirstStandWhereTheLastOfThemDid) {
  constexpr int64_t kWorkers = 3;
  CompletionSeries one_by_one(kWorkers);
  CompletionSeries at_once(kWorkers);
  for (int64_t step = 1; step <= 10'000; ++step) {
    for (int64_t worker = 0; worker < kWorkers; ++worker)
      one_by_one.Add(Instant{step * step * kWorkers + worker});
    at_once.Add(Instant{step * step * kWorkers + kWorkers - 1}, kWorkers);
  }
  EXPECT_EQ(one_by_one, at_once);
  EXPECT_EQ(at_once.stride(), kWorkers * 8);
  ASSERT_EQ(at_once.marks().size(), 10'000U / 8);
  EXPECT_EQ(at_once.marks()[0], Instant{8 * 8 * kWorkers + kWorkers - 1});
}

RunResult Simulated(const Profile& profile, const ScenarioDraft& draft, int32_t steps,
                    int32_t warmup = 0) {
  const Scenario scenario = Resolved(profile, draft);
  const JobGraph job = JobFor(profile, scenario);
  RunOptions options = OptionsFor(scenario, steps);
  options.warmup_steps = warmup;
  const absl::StatusOr<RunResult> result = Simulate(job, options, NeverStop);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(RunResult{});
}

std::vector<int64_t> EndsNs(const RunResult& result, size_t worker = 0) {
  std::vector<int64_t> ends;
  for (const Instant end : result.step_ends.at(worker)) ends.push_back(ToNanoseconds(end));
  return ends;
}

// A step of 3800 ns alone: 1000 down, 2000 of computation, 500 up, 300 on the server.
Profile Chain() {
  JobBuilder job;
  const int32_t download = job.Download(1000);
  const int32_t computation = job.Compute(2000, {download});
  const int32_t upload = job.Upload(500, {computation});
  job.Update(300, {upload});
  return job.Build();
}

// Two recorded steps of unlike computations.
Profile Random() {
  JobBuilder job;
  const int32_t download = job.Download(1000);
  job.Upload(700, {job.Compute({500, 1700}, {download})});
  return job.Build();
}

TEST(SimulationTest, OneWorkerRunsItsChainStepAfterStep) {
  const RunResult result = Simulated(Chain(), {}, 3);
  EXPECT_THAT(EndsNs(result), ElementsAre(3800, 7600, 11400));
  EXPECT_DOUBLE_EQ(result.steps_per_second, 1e9 / 3800);
  EXPECT_EQ(result.simulated_operations, 12);
}

TEST(SimulationTest, UtilizationOfEachLaneIsItsWorkOverTheStep) {
  const RunResult result = Simulated(Chain(), {}, 5);
  const ServerLanes lanes{.servers = 1};
  EXPECT_DOUBLE_EQ(result.utilization[ServerLanes::kWorker], 2000.0 / 3800);
  EXPECT_DOUBLE_EQ(result.utilization[static_cast<size_t>(lanes.Server(0))], 300.0 / 3800);
  EXPECT_DOUBLE_EQ(result.utilization[static_cast<size_t>(lanes.Downlink(0))], 1000.0 / 3800);
  EXPECT_DOUBLE_EQ(result.utilization[static_cast<size_t>(lanes.Uplink(0))], 500.0 / 3800);
  EXPECT_DOUBLE_EQ(result.exposed_communication_fraction, 1500.0 / 3800);
}

TEST(SimulationTest, CommunicationBehindComputationIsNotExposed) {
  JobBuilder job;
  const int32_t first = job.Download(1000);
  const int32_t second = job.Download(1000);
  const int32_t forward = job.Compute(1500, {first});
  job.Compute(500, {second, forward});
  // Down until 2000; computing from 1000 to 3000.
  EXPECT_DOUBLE_EQ(Simulated(job.Build(), {}, 4).exposed_communication_fraction, 1000.0 / 3000);
}

TEST(SimulationTest, TwoWorkersInStepHalveTheLinkAndUseItTwiceAsLong) {
  const RunResult result = Simulated(Chain(), {.workers = 2}, 3);
  // 2000 down, 2000 of computation, 1000 up, 300.
  for (size_t worker = 0; worker < 2; ++worker)
    EXPECT_THAT(EndsNs(result, worker), ElementsAre(5300, 10600, 15900));
  const ServerLanes lanes{.servers = 1};
  EXPECT_DOUBLE_EQ(result.utilization[ServerLanes::kWorker], 2000.0 / 5300);
  EXPECT_DOUBLE_EQ(result.utilization[static_cast<size_t>(lanes.Downlink(0))], 2000.0 / 5300);
  EXPECT_DOUBLE_EQ(result.steps_per_second, 2e9 / 5300);
}

TEST(SimulationTest, AnOffsetDelaysTheFirstStepOnly) {
  EXPECT_THAT(EndsNs(Simulated(Chain(), {.start_offsets_ns = {50}}, 3)),
              ElementsAre(3850, 7650, 11450));
}

TEST(SimulationTest, SynchronousWorkersBeginTogetherAndTheFirstOneWaits) {
  JobBuilder job;
  job.Compute(1000);
  const ScenarioDraft draft{
      .workers = 2,
      .communication = ParameterServersDraft{.synchronization = Synchronization::kSynchronous},
      .worker_groups = {{.count = 1}, {.count = 1, .compute_speed_factor = 0.5}}};
  const RunResult result = Simulated(job.Build(), draft, 3, 1);
  EXPECT_THAT(EndsNs(result, 0), ElementsAre(1000, 3000, 5000));
  EXPECT_THAT(EndsNs(result, 1), ElementsAre(2000, 4000, 6000));
  EXPECT_DOUBLE_EQ(result.straggler_fraction, 0.5);
}

TEST(SimulationTest, WhatBecomesReadyGoesBeforeAStreamThatIsStoppedAtThatInstant) {
  JobBuilder job;
  job.Upload(2000);
  const int32_t second = job.Upload(500, {job.Compute(1000)});
  job.Update(1500, {second});
  // 1000 of the first, the second until 1500, the rest until 2500; the update until 3000.
  EXPECT_THAT(
      EndsNs(Simulated(
          job.Build(),
          {.communication = ParameterServersDraft{.multiplexing = WindowDraft{.bytes = 1000}}}, 1)),
      ElementsAre(3000));
}

TEST(SimulationTest, WhatZeroLengthWorkReleasesComesAfterWhatWasReadyBefore) {
  JobBuilder job;
  const int32_t nothing = job.Compute(0);
  job.Upload(500, {nothing});
  const int32_t ready = job.Upload(1000);
  job.Update(1500, {ready});
  EXPECT_THAT(EndsNs(Simulated(job.Build(), {}, 1)), ElementsAre(2500));
}

TEST(SimulationTest, WhatEndsTogetherReleasesInGraphOrder) {
  for (const bool worker_first : {false, true}) {
    JobBuilder job;
    const int32_t on_server = job.Update(1000);
    const int32_t on_worker = job.Compute(1000);
    const int32_t earlier = job.Upload(500, {worker_first ? on_worker : on_server});
    job.Upload(500, {worker_first ? on_server : on_worker});
    job.Update(1500, {earlier});
    EXPECT_THAT(EndsNs(Simulated(job.Build(), {}, 1)), ElementsAre(3000)) << worker_first;
  }
}

TEST(SimulationTest, TheSameSeedGivesTheSameRunAndAnotherDoesNot) {
  const Profile profile = Random();
  const Scenario scenario = Resolved(profile, {.workers = 3});
  const JobGraph job = JobFor(profile, scenario);
  const auto run = [&](uint64_t seed, uint64_t replication) {
    testing::KeptTrace trace;
    RunOptions options = OptionsFor(scenario, 40);
    options.seed = seed;
    options.replication = replication;
    options.trace = &trace;
    const absl::StatusOr<RunResult> result = Simulate(job, options, NeverStop);
    EXPECT_TRUE(result.ok()) << result.status();
    return std::tuple(result->step_ends, result->steps_per_second, result->utilization,
                      trace.records);
  };
  EXPECT_EQ(run(7, 0), run(7, 0));
  EXPECT_NE(std::get<0>(run(7, 0)), std::get<0>(run(8, 0)));
  EXPECT_NE(std::get<0>(run(7, 0)), std::get<0>(run(7, 1)));
}

TEST(SimulationTest, ReplayRunsTheRecordedStepsInTurn) {
  const Profile profile = Random();
  const Scenario scenario = Resolved(profile);
  RunOptions options = OptionsFor(scenario, 4);
  JobGraph job = JobFor(profile, scenario);
  job.drawing = StepDrawing::kReplay;
  const absl::StatusOr<RunResult> result = Simulate(job, options, NeverStop);
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(EndsNs(*result), ElementsAre(2200, 5600, 7800, 11200));
}

TEST(SimulationTest, NoLaneIsEverUsedMoreThanFully) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const testing::RandomCase random_case = testing::MakeRandomCase(seed);
    const absl::StatusOr<RunResult> result = Simulate(
        testing::EngineJob(random_case), testing::EngineOptions(random_case, seed), NeverStop);
    ASSERT_TRUE(result.ok());
    EXPECT_THAT(result->utilization,
                Each(::testing::AllOf(::testing::Ge(0.0), ::testing::Le(1 + 1e-9))));
    EXPECT_GE(result->exposed_communication_fraction, 0);
    EXPECT_LE(result->exposed_communication_fraction, 1);
  }
}

}  // namespace
}  // namespace stepcast::simulation_test
