#include "core/predict/replications.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"

#include "core/base/error.h"
#include "core/base/stop_check.h"
#include "core/communication/parameter_servers.h"
#include "core/predict/throughput.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::replications_test {
namespace {

using testing::JobBuilder;
using testing::Resolved;

// Whatever a scenario asks for, and on the plain engine too, which traces.
TEST(RunOptionsTest, TheFirstReplicationIsTheOneThatAPredictionCounts) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const testing::RandomCase random_case = testing::MakeRandomCase(seed);
    const SimulationOptions options{
        .steps_per_worker = random_case.steps_per_worker,
        .warmup_steps = random_case.warmup_steps,
        .seed = seed,
        .replications = 1,
        .start = seed % 3 == 0 && random_case.scenario.start_offsets_ns.empty()
                     ? Start::kStaggered
                     : Start::kSimultaneous};
    const ThroughputQuery query{.scenarios = {random_case.scenario}, .options = options};
    const auto answer = PredictThroughput(random_case.profile, query, NeverStop);
    if (!answer.ok()) continue;  // too short to be measured
    const auto graph = RankedGraph::Make(random_case.profile, random_case.scenario, NeverStop);
    ASSERT_TRUE(graph.ok());
    RunOptions plain = RunOptionsOf(random_case.profile, random_case.scenario, options, 0);
    plain.fastest_path = EnginePath::kPlain;
    const auto run = Simulate((*graph)->JobOf(random_case.scenario), plain, NeverStop);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->steps_per_second, answer->predictions[0].steps_per_second);
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

RunOptions OptionsOf(const SimulationOptions& options, int32_t replication) {
  const testing::RandomCase random_case = testing::MakeRandomCase(1);
  Scenario scenario = random_case.scenario;
  scenario.workers = 3;
  scenario.start_offsets_ns.clear();
  scenario.worker_groups.clear();
  return RunOptionsOf(random_case.profile, scenario, options, replication);
}

TEST(RunOptionsTest, StaggeredStartsAreDrawnAnewInEachReplication) {
  const SimulationOptions staggered{.seed = 7, .start = Start::kStaggered};
  EXPECT_EQ(OptionsOf(staggered, 1).start_offsets, OptionsOf(staggered, 1).start_offsets);
  EXPECT_NE(OptionsOf(staggered, 1).start_offsets, OptionsOf(staggered, 2).start_offsets);
  EXPECT_EQ(OptionsOf({.seed = 7, .start = Start::kSimultaneous}, 1).start_offsets,
            std::vector<Span>(3));
  EXPECT_EQ(OptionsOf(staggered, 2).replication, 2U);
}

TEST(RunOptionsTest, AHorizonTakesThePlaceOfStepsAndWarmUp) {
  const RunOptions steps = OptionsOf({.steps_per_worker = 1000,
                                      .warmup_steps = 50,
                                      .horizon = Horizon::kFirstSteps,
                                      .horizon_steps = 7},
                                     0);
  EXPECT_EQ(steps.steps_per_worker, 7);
  EXPECT_EQ(steps.warmup_steps, 0);
  EXPECT_EQ(steps.until, kEndOfTime);
  const RunOptions seconds =
      OptionsOf({.horizon = Horizon::kFirstSeconds, .horizon_seconds = 2.5}, 0);
  EXPECT_EQ(seconds.until, Instant{} + FromSeconds(2.5));
  const RunOptions steady = OptionsOf({.steps_per_worker = 1000, .warmup_steps = 50}, 0);
  EXPECT_EQ(steady.steps_per_worker, 1000);
  EXPECT_EQ(steady.warmup_steps, 50);
  EXPECT_EQ(steady.until, kEndOfTime);
}

// With unlike recorded steps, if `is_random`.
Profile Job(bool is_random) {
  JobBuilder job;
  const std::vector<int64_t> times =
      is_random ? std::vector<int64_t>{500, 900, 2100} : std::vector<int64_t>{500};
  job.Upload(700, {job.Compute(times, {job.Download(1000)})});
  return job.Build();
}

Replications Start(const Profile& profile, const ScenarioDraft& draft,
                   const SimulationOptions& options) {
  const Scenario scenario = Resolved(profile, draft);
  absl::StatusOr<std::shared_ptr<const RankedGraph>> graph =
      RankedGraph::Make(profile, scenario, NeverStop);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return {profile, scenario, options, *std::move(graph)};
}

void RunAll(Replications& runs) {
  while (runs.Wanted() > 0) {
    const absl::StatusOr<RunSummary> result = runs.Run(runs.done(), NeverStop);
    ASSERT_TRUE(result.ok()) << result.status();
    runs.Add(*result);
  }
}

int32_t RunsUntilEnough(Replications runs) {
  RunAll(runs);
  return runs.done();
}

TEST(ReplicationsTest, WhereNothingIsRandomOneRunIsEnough) {
  const Profile profile = Job(false);
  const SimulationOptions together{.steps_per_worker = 50,
                                   .warmup_steps = 5,
                                   .replications = 7,
                                   .start = stepcast::Start::kSimultaneous};
  EXPECT_EQ(RunsUntilEnough(Start(profile, {.workers = 2}, together)), 1);
  SimulationOptions staggered = together;
  staggered.start = stepcast::Start::kStaggered;
  EXPECT_EQ(RunsUntilEnough(Start(profile, {.workers = 1}, staggered)), 1)
      << "one worker has nobody to be apart from";
  EXPECT_EQ(RunsUntilEnough(
                Start(profile,
                      {.workers = 2,
                       .communication =
                           ParameterServersDraft{.synchronization = Synchronization::kSynchronous}},
                      staggered)),
            1)
      << "workers that wait for each other forget their start";
  EXPECT_EQ(RunsUntilEnough(Start(profile, {.workers = 2, .start_offsets_ns = {0, 5}}, staggered)),
            1)
      << "offsets that are given are not drawn";
}

TEST(ReplicationsTest, SampledStepsRandomOrdersAndStaggeredStartsAreRandom) {
  const SimulationOptions options{.steps_per_worker = 50,
                                  .warmup_steps = 5,
                                  .replications = 7,
                                  .start = stepcast::Start::kSimultaneous};
  SimulationOptions staggered = options;
  staggered.start = stepcast::Start::kStaggered;
  const Profile sampled = Job(true);
  const Profile fixed = Job(false);
  EXPECT_EQ(RunsUntilEnough(Start(sampled, {.workers = 2}, options)), 7);
  EXPECT_EQ(RunsUntilEnough(Start(
                fixed,
                {.workers = 2,
                 .communication = ParameterServersDraft{.transfer_order = TransferOrder::kRandom}},
                options)),
            7);
  EXPECT_EQ(RunsUntilEnough(Start(fixed, {.workers = 2}, staggered)), 7);
}

// Five where they agree within 5 %, or were asked for; ten and then twenty where single runs
// scatter further.
TEST(ReplicationsTest, WhatScattersIsRunMoreOftenUnlessTheirNumberWasAskedFor) {
  const Profile profile = Job(true);
  const SimulationOptions calm{
      .steps_per_worker = 2000, .warmup_steps = 50, .automatic_replications = true};
  const SimulationOptions wild{
      .steps_per_worker = 12, .warmup_steps = 0, .automatic_replications = true};
  SimulationOptions asked = wild;
  asked.automatic_replications = false;
  EXPECT_EQ(RunsUntilEnough(Start(profile, {.workers = 2}, calm)), 5);
  EXPECT_EQ(RunsUntilEnough(Start(profile, {.workers = 2}, wild)), 20);
  EXPECT_EQ(RunsUntilEnough(Start(profile, {.workers = 2}, asked)), 5);
  Replications runs = Start(profile, {.workers = 2}, wild);
  RunAll(runs);
  const Prediction prediction = runs.Summarize();
  EXPECT_LT(prediction.run_interval.lower, prediction.confidence_interval.lower);
  EXPECT_GT(prediction.run_interval.upper, prediction.confidence_interval.upper);
}

TEST(ReplicationsTest, APrecisionIsNotTrustedBeforeThreeRuns) {
  const Profile profile = Job(true);
  const SimulationOptions loose{
      .steps_per_worker = 500, .warmup_steps = 5, .replications = 50, .relative_precision = 1};
  EXPECT_EQ(RunsUntilEnough(Start(profile, {.workers = 2}, loose)), 3);
}

TEST(ReplicationsTest, RunsGoOnUntilTheIntervalIsNarrowEnough) {
  const Profile profile = Job(true);
  SimulationOptions options{
      .steps_per_worker = 100, .warmup_steps = 5, .replications = 1000, .relative_precision = 0.01};
  Replications runs = Start(profile, {.workers = 2}, options);
  RunAll(runs);
  EXPECT_LT(runs.done(), 1000);
  const Prediction prediction = runs.Summarize();
  const double half_width =
      (prediction.confidence_interval.upper - prediction.confidence_interval.lower) / 2;
  EXPECT_LE(half_width, 0.01 * prediction.examples_per_second);
}

TEST(ReplicationsTest, EachRunIsAnotherDrawAndTheSameSeedDrawsTheSame) {
  const Profile profile = Job(true);
  const auto answer = [&](uint64_t seed, int32_t count) {
    Replications runs =
        Start(profile, {.workers = 2},
              {.steps_per_worker = 60, .warmup_steps = 5, .seed = seed, .replications = count});
    RunAll(runs);
    return runs.Summarize();
  };
  EXPECT_EQ(answer(1, 4).steps_per_second, answer(1, 4).steps_per_second);
  EXPECT_NE(answer(1, 4).steps_per_second, answer(2, 4).steps_per_second);
  const Prediction four = answer(1, 4);
  EXPECT_LT(four.confidence_interval.lower, four.examples_per_second);
  EXPECT_GT(four.confidence_interval.upper, four.examples_per_second);
}

// From 10000, where the second starts, to 18000, where the first ends its second step: its only
// completion inside.
TEST(ReplicationsTest, AWorkerWithoutTwoCompletionsInTheCountedTimeIsAnError) {
  JobBuilder job;
  job.Compute(9000);
  const Profile profile = job.Build();
  const ScenarioDraft draft{
      .workers = 2,
      .start_offsets_ns = {0, 10'000},
      .worker_groups = {{.count = 1}, {.count = 1, .compute_speed_factor = 1000}}};
  Replications runs = Start(profile, draft, {.steps_per_worker = 2, .warmup_steps = 0});
  const absl::Status status = runs.Run(0, NeverStop).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailsOf(status).reason, "SIMULATION_TOO_SHORT");
  EXPECT_EQ(runs.done(), 0);
}

// Nobody gave a number of steps but that of the first ones.
TEST(ReplicationsTest, TooFewFirstStepsAreNamedAsSuch) {
  JobBuilder job;
  job.Compute(9000);
  const Profile profile = job.Build();
  Replications runs = Start(profile, {.workers = 2, .start_offsets_ns = {0, 10'000}},
                            {.horizon = Horizon::kFirstSteps, .horizon_steps = 1});
  const absl::Status status = runs.Run(0, NeverStop).status();
  EXPECT_EQ(DetailsOf(status).reason, "SIMULATION_TOO_SHORT");
  EXPECT_EQ(DetailsOf(status).metadata.at("horizon_steps"), "1");
  EXPECT_EQ(std::string(status.message()),
            "a worker ends fewer than two steps once all have started: horizon_steps 1 is too few");
}

// As a request without any option: a length and a number of runs that may grow.
constexpr SimulationOptions kUnasked{.automatic_steps = true, .automatic_replications = true};

// Of steps that differ by `spread` ns.
Profile JobOfSteps(int64_t spread) {
  JobBuilder job;
  job.Upload(1000,
             {job.Compute({50'000, 50'000 + spread, 50'000 + 2 * spread}, {job.Download(1000)})});
  return job.Build();
}

TEST(ReplicationsTest, OfTheLeastLengthFiveRunsDoWhereTheMeanIsKnown) {
  const Profile profile = JobOfSteps(500);
  Replications runs = Start(profile, {.workers = 4}, kUnasked);
  RunAll(runs);
  EXPECT_EQ(runs.done(), 5);
  EXPECT_FALSE(runs.NeedsLength());
  const Prediction prediction = runs.Summarize();
  EXPECT_EQ(prediction.steps_per_worker, 100);
  EXPECT_LE(prediction.confidence_interval.upper, 1.01 * prediction.examples_per_second);
  EXPECT_TRUE(prediction.steady_state);
}

TEST(ReplicationsTest, WhatScattersIsMadeAnewLongerAndSaysWhatLongRunsAloneSay) {
  const Profile profile = JobOfSteps(2'000'000);
  Replications runs = Start(profile, {.workers = 4}, kUnasked);
  RunAll(runs);
  ASSERT_TRUE(runs.CanLengthen());
  ASSERT_TRUE(runs.NeedsLength());
  const int64_t short_operations = runs.simulated_operations();
  const int64_t short_runs = runs.made();
  runs.Lengthen();
  EXPECT_EQ(runs.done(), 0);
  EXPECT_FALSE(runs.CanLengthen());
  RunAll(runs);
  EXPECT_FALSE(runs.NeedsLength()) << "there is nothing longer";
  EXPECT_EQ(runs.options().steps_per_worker, 600);
  EXPECT_EQ(runs.Summarize().steps_per_worker, 600);
  double sum = 0;
  int64_t operations = 0;
  for (int32_t run = 0; run < runs.done(); ++run) {
    const absl::StatusOr<RunSummary> alone = runs.Run(run, NeverStop);
    ASSERT_TRUE(alone.ok());
    sum += alone->estimate.steps_per_second / runs.done();
    operations += alone->simulated_operations;
  }
  EXPECT_NEAR(runs.StepsPerSecond().mean, sum, 1e-9 * sum);
  EXPECT_EQ(runs.simulated_operations(), short_operations + operations);
  EXPECT_EQ(runs.made(), short_runs + runs.done());
}

TEST(ReplicationsTest, APrecisionThatIsAskedForDecidesOnTheLengthToo) {
  const Profile profile = JobOfSteps(500);
  SimulationOptions options = kUnasked;
  options.automatic_replications = false;
  options.replications = 100;
  options.relative_precision = 1e-5;
  Replications runs = Start(profile, {.workers = 4}, options);
  RunAll(runs);
  EXPECT_TRUE(runs.NeedsLength());
  options.relative_precision = 0.05;
  Replications coarse = Start(profile, {.workers = 4}, options);
  RunAll(coarse);
  EXPECT_FALSE(coarse.NeedsLength());
  EXPECT_EQ(coarse.done(), 5);
}

TEST(ReplicationsTest, ALengthMayStayUnaskedWhereTheNumberOfRunsIsAskedFor) {
  SimulationOptions options = kUnasked;
  options.automatic_replications = false;
  options.replications = 7;
  EXPECT_EQ(RunsUntilEnough(Start(JobOfSteps(500), {.workers = 4}, options)), 7);
}

TEST(ReplicationsTest, WhereNothingIsRandomARunIsAsLongAsEver) {
  const Profile profile = Job(false);
  Replications runs = Start(profile, {.workers = 1}, kUnasked);
  RunAll(runs);
  EXPECT_EQ(runs.done(), 1);
  EXPECT_FALSE(runs.CanLengthen());
  EXPECT_EQ(runs.Summarize().steps_per_worker, 1000);
}

// 100 workers share a link that takes 1 us for a download: a step of theirs takes 100 us at least.
TEST(RunOptionsTest, WithoutALengthWorkersStartWithinAStepAsTheLinksMakeIt) {
  const Profile profile = Job(true);
  const Scenario scenario = Resolved(profile, {.workers = 100});
  SimulationOptions options{.start = Start::kStaggered};
  const auto latest = [&] {
    const RunOptions run = RunOptionsOf(profile, scenario, options, 0);
    return *std::max_element(run.start_offsets.begin(), run.start_offsets.end());
  };
  const double link_ns = 1000 / scenario.bandwidth_bytes_per_second * 1e9;
  const Span recorded = Nanoseconds(static_cast<int64_t>(profile.mean_step_ns()));
  const Span shared = Nanoseconds(static_cast<int64_t>(100 * link_ns));
  ASSERT_GT(shared, recorded + recorded);
  EXPECT_LE(latest(), recorded);
  options.automatic_steps = true;
  EXPECT_GT(ToSeconds(latest()), 0.9 * ToSeconds(shared));
  EXPECT_LE(latest(), shared);
}

TEST(ReplicationsTest, AStoppedRunCountsForNothing) {
  const Profile profile = Job(true);
  Replications runs =
      Start(profile, {.workers = 2}, {.steps_per_worker = 100'000, .warmup_steps = 5});
  EXPECT_EQ(runs.Run(0, [] { return absl::CancelledError("enough"); }).status(),
            absl::CancelledError("enough"));
  EXPECT_EQ(runs.done(), 0);
}

TEST(ReplicationsTest, AGraphIsSharedWhereOnlyWorkersAndTheirStartsDiffer) {
  const Profile profile = Job(false);
  const Scenario base = Resolved(profile, {.workers = 2});
  EXPECT_TRUE(RankedGraph::SharedBy(base, Resolved(profile, {.workers = 9})));
  EXPECT_TRUE(RankedGraph::SharedBy(
      base, Resolved(profile,
                     {.workers = 1, .worker_groups = {{.count = 1, .compute_speed_factor = 2}}})));
  EXPECT_FALSE(RankedGraph::SharedBy(
      base, Resolved(profile, {.workers = 2, .bandwidth_bytes_per_second = 5e8})));
  // Workers that wait for each other have one world more.
  EXPECT_FALSE(RankedGraph::SharedBy(
      base, Resolved(profile, {.workers = 2,
                               .communication = ParameterServersDraft{
                                   .synchronization = Synchronization::kSynchronous}})));
  EXPECT_FALSE(RankedGraph::SharedBy(
      base, Resolved(profile, {.workers = 2,
                               .communication = ParameterServersDraft{
                                   .transfer_order = TransferOrder::kReverse}})));
  EXPECT_FALSE(RankedGraph::SharedBy(
      base, Resolved(profile, {.workers = 2,
                               .communication = ParameterServersDraft{
                                   .multiplexing = WindowDraft{.bytes = 100}}})));
}

}  // namespace
}  // namespace stepcast::replications_test
