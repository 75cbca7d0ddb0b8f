#include "core/predict/point_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/predict/certainty.h"
#include "core/predict/run_memory.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"
#include "tests/core/predict/kept_runs.h"

namespace stepcast::point_set_test {
namespace {

using testing::KeptRuns;

auto Everything(const Prediction& p) {
  std::vector<double> shares;
  for (const ResourceUtilization& used : p.utilization) shares.push_back(used.fraction);
  return std::tuple(p.scenario, p.examples_per_second, p.confidence_interval.lower,
                    p.confidence_interval.upper, p.step_time.mean, p.step_time.p50, p.step_time.p99,
                    p.speedup, p.scaling_efficiency, shares, p.exposed_communication_fraction,
                    p.steady_state, p.warnings, p.replications);
}

Profile Sampled() {
  testing::JobBuilder job;
  job.Upload(700, {job.Compute({500, 900, 2100}, {job.Download(1000)})});
  return job.Build();
}

SimulationOptions Options(int32_t replications) {
  return {.steps_per_worker = 80, .warmup_steps = 5, .replications = replications};
}

Scenario Workers(const Profile& profile, int32_t count) {
  return testing::Resolved(profile, {.workers = count});
}

Prediction InFull(const Profile& profile, const Scenario& scenario,
                  const SimulationOptions& options) {
  return PredictThroughput(profile, {.scenarios = {scenario}, .options = options}, NeverStop)
      .value()
      .predictions[0];
}

TEST(PointSetTest, AsManyAsAreTriedOneAfterTheOtherSayWhatOneRequestForAllSays) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Profile profile = testing::MakeRandomCase(seed).profile;
    const SimulationOptions options{.steps_per_worker = 40,
                                    .warmup_steps = 4,
                                    .automatic_warmup = seed % 2 == 0,
                                    .replications = 4};
    PointSet points(profile, options);
    for (const int32_t workers : {5, 2, 1, 5, 3}) {
      const size_t index = points.Try(Workers(profile, workers), NeverStop).value();
      ASSERT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
      EXPECT_EQ(points.Add(Workers(profile, workers), NeverStop).value(), index);
      ASSERT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
      EXPECT_EQ(Everything(points.Summarize(index)),
                Everything(InFull(profile, Workers(profile, workers), options)));
    }
  }
}

// A request without options: runs are made anew, longer, where they say too little.
TEST(PointSetTest, WithoutALengthTriesOneAfterTheOtherSayWhatOneRequestSaysToo) {
  const SimulationOptions options{
      .automatic_steps = true, .automatic_warmup = true, .automatic_replications = true};
  int longest = 0;
  int shortest = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Profile profile = testing::MakeRandomCase(seed).profile;
    PointSet points(profile, options);
    for (const int32_t workers : {5, 2, 12}) {
      const size_t index = points.Try(Workers(profile, workers), NeverStop).value();
      ASSERT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
      ASSERT_TRUE(points.Add(Workers(profile, workers), NeverStop).ok());
      ASSERT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
      const Prediction prediction = points.Summarize(index);
      EXPECT_EQ(Everything(prediction),
                Everything(InFull(profile, Workers(profile, workers), options)));
      const SimulationOptions runs = OptionsOfRuns(options, Workers(profile, workers), 0);
      shortest += prediction.steps_per_worker == runs.steps_per_worker ? 1 : 0;
      longest += prediction.steps_per_worker > runs.steps_per_worker ? 1 : 0;
    }
  }
  EXPECT_GT(shortest, 20);
  EXPECT_GT(longest, 20);
}

// Where the budget is spent before a longer run has been made, the shorter ones are the answer.
TEST(PointSetTest, ASpentBudgetLeavesWhatTheShorterRunsSaid) {
  const Profile profile = Sampled();
  const SimulationOptions options{
      .automatic_steps = true, .automatic_warmup = true, .automatic_replications = true};
  const int32_t least = OptionsOfRuns(options, Workers(profile, 4), 0).steps_per_worker;
  std::set<int32_t> lengths;
  for (int enough = 1; enough < 60; ++enough) {
    PointSet points(profile, options);
    int asked = 0;
    const auto stop = [&] { return asked++ < enough ? absl::OkStatus() : TimeBudgetSpent(); };
    const absl::StatusOr<size_t> index = points.Add(Workers(profile, 4), stop);
    if (!index.ok() || !points.RunAll(stop, InOrder()).ok()) continue;
    ASSERT_TRUE(points.HasRun(*index)) << enough;
    const Prediction prediction = points.Summarize(*index);
    lengths.insert(prediction.steps_per_worker);
    EXPECT_GE(prediction.replications, prediction.steps_per_worker == least ? 1 : 5) << enough;
  }
  EXPECT_THAT(lengths, ::testing::Contains(least));
}

TEST(PointSetTest, ATryTakesAThirdOfTheRunsAndIsNotComparedWithAnotherStart) {
  const Profile profile = Sampled();
  PointSet points(profile, Options(9));
  const size_t index = points.Try(Workers(profile, 4), NeverStop).value();
  ASSERT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
  EXPECT_EQ(points.Summarize(index).replications, PointSet::kRunsOfATry);
  EXPECT_EQ(points.Statistics().runs, PointSet::kRunsOfATry + 9);  // its baseline in full
  ASSERT_TRUE(points.Add(Workers(profile, 4), NeverStop).ok());
  ASSERT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
  EXPECT_EQ(points.Summarize(index).replications, 9);
  EXPECT_EQ(points.Statistics().runs, 9 + 9 + 3);
}

TEST(PointSetTest, RunAllMakesNothingTwice) {
  const Profile profile = Sampled();
  PointSet points(profile, Options(4));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(points.Add(Workers(profile, 2), NeverStop).ok());
    ASSERT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
    EXPECT_EQ(points.Statistics().runs, 4 + 3 + 4);
  }
  // That scenario and its one worker are all that there is.
  EXPECT_EQ(points.AddAlone(Workers(profile, 3), NeverStop).value(), 2u);
}

TEST(PointSetTest, APointWithoutARunSaysSo) {
  const Profile profile = Sampled();
  PointSet points(profile, Options(2));
  const size_t first = points.Add(Workers(profile, 2), NeverStop).value();
  EXPECT_FALSE(points.HasRun(first));
  ASSERT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
  const size_t second = points.Add(Workers(profile, 3), NeverStop).value();
  EXPECT_TRUE(IsTimeBudgetSpent(points.RunAll([] { return TimeBudgetSpent(); }, InOrder())));
  EXPECT_TRUE(points.HasRun(first));
  EXPECT_FALSE(points.HasRun(second));
}

// Calls with other counts, more or fewer replications and other options, all with one memory, as a
// server makes them.
TEST(RunMemoryTest, AnswersHaveTheSameBytesWithAMemoryAndWithout) {
  Random random({7});
  KeptRuns memory;
  int64_t recalled = 0;
  for (uint64_t call = 0; call < 250; ++call) {
    SCOPED_TRACE(::testing::Message() << "call " << call);
    const uint64_t seed = 1 + random.Below(4);
    const Profile profile = testing::MakeRandomCase(seed).profile;
    SimulationOptions options{.steps_per_worker = 30,
                              .warmup_steps = 3,
                              .replications = static_cast<int32_t>(1 + random.Below(5))};
    options.automatic_warmup = random.Below(2) == 0;
    options.automatic_steps = random.Below(8) == 0;
    options.automatic_replications = options.automatic_steps;
    options.seed = 1 + random.Below(2);
    options.start = random.Below(2) == 0 ? Start::kStaggered : Start::kSimultaneous;
    options.relative_precision = random.Below(3) == 0 ? 0.02 : 0;
    options.confidence_level = random.Below(2) == 0 ? 0.95 : 0.5;
    ThroughputQuery query{.options = options};
    for (uint64_t i = 0; i < 1 + random.Below(3); ++i)
      query.scenarios.push_back(Workers(profile, static_cast<int32_t>(1 + random.Below(5))));
    const ThroughputAnswer without = PredictThroughput(profile, query, NeverStop).value();
    const ThroughputAnswer with =
        PredictThroughput(profile, query, NeverStop, InOrder(),
                          {.memory = &memory, .profile_digest = std::to_string(seed)})
            .value();
    ASSERT_EQ(with.predictions.size(), without.predictions.size());
    for (size_t i = 0; i < with.predictions.size(); ++i)
      EXPECT_EQ(Everything(with.predictions[i]), Everything(without.predictions[i]));
    EXPECT_EQ(with.simulation.simulated_operations, without.simulation.simulated_operations);
    EXPECT_EQ(with.simulation.engine_path, without.simulation.engine_path);
    EXPECT_EQ(with.simulation.runs, without.simulation.runs);
    EXPECT_EQ(without.simulation.recalled_runs, 0);
    recalled += with.simulation.recalled_runs;
  }
  EXPECT_EQ(recalled, memory.hits);
  EXPECT_GT(memory.hits, 0);
  EXPECT_GT(memory.hits_of_changes, 0);
  EXPECT_GT(memory.hits + memory.hits_of_changes, static_cast<int>(memory.size()));
}

TEST(RunMemoryTest, MoreReplicationsAndMoreCountsMakeOnlyWhatIsNew) {
  const Profile profile = Sampled();
  KeptRuns memory;
  const auto made = [&](const std::vector<int32_t>& counts, int32_t replications) {
    ThroughputQuery query{.options = Options(replications)};
    for (const int32_t count : counts) query.scenarios.push_back(Workers(profile, count));
    const ThroughputAnswer answer = PredictThroughput(profile, query, NeverStop, InOrder(),
                                                      {.memory = &memory, .profile_digest = "d"})
                                        .value();
    return answer.simulation.runs - answer.simulation.recalled_runs;
  };
  // Two workers, their other start and one worker.
  EXPECT_EQ(made({2}, 4), 4 + 3 + 4);
  EXPECT_EQ(made({2}, 4), 0);
  EXPECT_EQ(made({2}, 6), 2 + 2);
  EXPECT_EQ(made({2, 3}, 6), 6 + 3);
  EXPECT_EQ(made({1}, 6), 0);
}

TEST(RunMemoryTest, AStoppedCallKeepsTheRunsItMade) {
  const Profile profile = Sampled();
  KeptRuns memory;
  int asked = 0;
  const auto stop = [&] { return asked++ < 6 ? absl::OkStatus() : absl::CancelledError("enough"); };
  const ThroughputQuery query{.scenarios = {Workers(profile, 2)}, .options = Options(50)};
  EXPECT_EQ(
      PredictThroughput(profile, query, stop, InOrder(), {.memory = &memory, .profile_digest = "d"})
          .status(),
      absl::CancelledError("enough"));
  EXPECT_GT(memory.size(), 0u);
}

TEST(RunMemoryTest, AProfileWithAnotherDigestFindsNothing) {
  const Profile profile = Sampled();
  KeptRuns memory;
  const ThroughputQuery query{.scenarios = {Workers(profile, 2)}, .options = Options(2)};
  for (const char* digest : {"a", "b"}) {
    EXPECT_EQ(PredictThroughput(profile, query, NeverStop, InOrder(),
                                {.memory = &memory, .profile_digest = digest})
                  .value()
                  .simulation.recalled_runs,
              0);
  }
}

// The runs of the start that was not asked for say nothing of what the recording leaves open.
// The computation decides, so that what the recording leaves open of it counts.
TEST(RunMemoryTest, ARunOfTheOtherStartIsNoneOfThatStartAskedFor) {
  testing::JobBuilder job;
  job.Upload(70, {job.Compute({5000, 9000, 21000}, {job.Download(100)})});
  const Profile profile = job.Build();
  KeptRuns memory;
  const auto predict = [&](Start start, const KnownRuns& known) {
    SimulationOptions options = Options(3);
    options.start = start;
    options.step_variation = StepSource::kModelled;
    const ThroughputQuery query{.scenarios = {Workers(profile, 4)}, .options = options};
    return Everything(
        PredictThroughput(profile, query, NeverStop, InOrder(), known).value().predictions[0]);
  };
  const KnownRuns known{.memory = &memory, .profile_digest = "d"};
  predict(Start::kStaggered, known);
  EXPECT_EQ(predict(Start::kSimultaneous, known), predict(Start::kSimultaneous, {}));
  EXPECT_EQ(predict(Start::kStaggered, known), predict(Start::kStaggered, {}));
}

// Workers that begin together stay in step for ever: no longer run will say anything else.
TEST(PointSetTest, WhereNeitherStartMovesShortRunsAreTheAnswer) {
  testing::JobBuilder job;
  job.Upload(700, {job.Compute(100, {job.Download(700)})});
  const Profile profile = job.Build();
  const SimulationOptions options{
      .automatic_steps = true, .automatic_warmup = true, .automatic_replications = true};
  PointSet points(profile, options);
  const size_t index = points.AddAlone(Workers(profile, 120), NeverStop).value();
  ASSERT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
  const Prediction prediction = points.Summarize(index);
  EXPECT_EQ(prediction.regimes.size(), 2u);
  EXPECT_EQ(prediction.steps_per_worker,
            OptionsOfRuns(options, Workers(profile, 120), 0).steps_per_worker);
  // The other start's are of both lengths.
  EXPECT_EQ(points.Statistics().runs, prediction.replications + 2);
}

// Groups of runs are chance where one worker cannot lie differently in time, or where workers begin
// every step together.
TEST(PointSetTest, OnlyWorkersThatRememberTheirStartHaveRegimes) {
  testing::JobBuilder job;
  job.Compute({1000, 1000, 1000, 1000, 90'000}, {job.Download(100)});
  const Profile profile = job.Build();
  int parted = 0;
  for (const int32_t workers : {1, 3}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Scenario scenario = Workers(profile, workers);
      scenario.servers().synchronization = Synchronization::kSynchronous;
      const SimulationOptions options{
          .steps_per_worker = 4, .warmup_steps = 1, .seed = seed, .replications = 6};
      PointSet points(profile, options);
      const size_t index = points.AddAlone(scenario, NeverStop).value();
      ASSERT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
      parted += std::isfinite(SplitInTwo(points.RunsOf(index))) ? 1 : 0;
      EXPECT_TRUE(points.Summarize(index).regimes.empty()) << workers << " " << seed;
    }
  }
  EXPECT_GT(parted, 3) << "no runs in two groups";
}

TEST(RunSummaryTest, KnowsItsSizeWhichTheLengthOfTheRunAddsAFewMarksTo) {
  const Profile profile = Sampled();
  const auto bytes = [&](int32_t steps) {
    KeptRuns memory;
    const SimulationOptions options{
        .steps_per_worker = steps, .warmup_steps = 5, .replications = 1};
    PointSet points(profile, options, {.memory = &memory, .profile_digest = "d"});
    EXPECT_TRUE(points.Add(Workers(profile, 1), NeverStop).ok());
    EXPECT_TRUE(points.RunAll(NeverStop, InOrder()).ok());
    return memory.Find(RunKeyOf(RunKeyPrefix("d", Workers(profile, 1), options), 0))->bytes();
  };
  EXPECT_GT(bytes(100), 8192u);
  EXPECT_LT(bytes(100), 65536u);
  // Of the 200 marks of its throughput over time, which a vector has room for.
  EXPECT_GT(bytes(5000), bytes(100));
  EXPECT_LE(bytes(5000), bytes(100) + 2 * 200 * sizeof(Instant));
  EXPECT_LE(bytes(20'000), bytes(100) + 2 * 200 * sizeof(Instant));
}

}  // namespace
}  // namespace stepcast::point_set_test
