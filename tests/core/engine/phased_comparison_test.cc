// The fast engine against the plain one: everything a run reports, to the tick.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/stop_check.h"
#include "core/engine/simulation.h"
#include "core/zoo/model_zoo.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/phase_case.h"

namespace stepcast::testing::phased_comparison_test {
namespace {

constexpr uint64_t kShards = 8;
constexpr uint64_t kCasesPerShard = 250;

struct TracedRun {
  RunResult result;
  std::vector<ChunkRecord> trace;
};

// Engines put the chunks of a step in their own order.
TracedRun RunOn(EnginePath fastest, const JobGraph& job, RunOptions options) {
  KeptTrace trace;
  options.trace = &trace;
  options.fastest_path = fastest;
  absl::StatusOr<RunResult> result = Simulate(job, options, NeverStop);
  EXPECT_TRUE(result.ok()) << result.status();
  std::sort(trace.records.begin(), trace.records.end(),
            [](const ChunkRecord& a, const ChunkRecord& b) {
              return std::tie(a.worker, a.step, a.op, a.service) <
                     std::tie(b.worker, b.step, b.op, b.service);
            });
  return {.result = *std::move(result), .trace = std::move(trace.records)};
}

void ExpectSame(const RunResult& fast, const RunResult& plain) {
  ASSERT_EQ(fast.step_ends, plain.step_ends);
  EXPECT_EQ(fast.steps_per_second, plain.steps_per_second);
  EXPECT_EQ(fast.measured, plain.measured);
  EXPECT_EQ(fast.counted_from, plain.counted_from);
  EXPECT_EQ(fast.counted, plain.counted);
  EXPECT_EQ(fast.utilization, plain.utilization);
  EXPECT_EQ(fast.exposed_communication_fraction, plain.exposed_communication_fraction);
  EXPECT_EQ(fast.straggler_fraction, plain.straggler_fraction);
  EXPECT_EQ(fast.first_half_steps_per_second, plain.first_half_steps_per_second);
  EXPECT_EQ(fast.second_half_steps_per_second, plain.second_half_steps_per_second);
  EXPECT_EQ(fast.step_times.count(), plain.step_times.count());
  EXPECT_EQ(fast.step_times.MeanSeconds(), plain.step_times.MeanSeconds());
  EXPECT_EQ(fast.completions, plain.completions);
  EXPECT_EQ(fast.simulated_operations, plain.simulated_operations);
}

void ExpectSame(const TracedRun& fast, const TracedRun& plain) {
  ASSERT_NO_FATAL_FAILURE(ExpectSame(fast.result, plain.result));
  ASSERT_EQ(fast.trace.size(), plain.trace.size());
  for (size_t i = 0; i < fast.trace.size(); ++i) {
    const ChunkRecord& record = fast.trace[i];
    ASSERT_EQ(record, plain.trace[i])
        << "worker " << record.worker << " step " << record.step << " op " << record.op
        << " service " << record.service << " from " << record.start.ticks << " to "
        << record.end.ticks << " instead of " << plain.trace[i].start.ticks << " to "
        << plain.trace[i].end.ticks;
  }
}

// Without a trace, which leaves the engine more freedom.
RunResult RunUntraced(EnginePath fastest, const JobGraph& job, RunOptions options) {
  options.fastest_path = fastest;
  absl::StatusOr<RunResult> result = Simulate(job, options, NeverStop);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

class PhasedComparisonTest : public ::testing::TestWithParam<uint64_t> {};

// Runs the jobs of a shard on every path.
void CompareOnEveryPath(uint64_t shard, PhaseCase (*make)(uint64_t)) {
  int cut = 0;
  for (uint64_t i = 0; i < kCasesPerShard; ++i) {
    const uint64_t seed = 1 + shard * kCasesPerShard + i;
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PhaseCase job = make(seed);
    const TracedRun plain = RunOn(EnginePath::kPlain, job.job, job.options);
    ASSERT_EQ(plain.result.path, EnginePath::kPlain);
    const TracedRun loop = RunOn(EnginePath::kWorkerLoop, job.job, job.options);
    ASSERT_EQ(loop.result.path, EnginePath::kWorkerLoop);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(loop, plain));
    const TracedRun fastest = RunOn(EnginePath::kMemoised, job.job, job.options);
    ASSERT_TRUE(!job.has_cut || fastest.result.path == EnginePath::kMemoised);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(fastest, plain));
    ASSERT_NO_FATAL_FAILURE(
        ExpectSame(RunUntraced(EnginePath::kMemoised, job.job, job.options), plain.result));
    cut += fastest.result.path == EnginePath::kMemoised ? 1 : 0;
  }
  // Or the comparison says less than it claims.
  EXPECT_GE(cut, static_cast<int>(kCasesPerShard) / 3);
  EXPECT_LE(cut, static_cast<int>(kCasesPerShard) * 9 / 10);
}

TEST_P(PhasedComparisonTest, RandomJobsRunTheSameOnEveryPath) {
  CompareOnEveryPath(GetParam(), MakePhaseCase);
}

TEST_P(PhasedComparisonTest, RandomJobsWithOrdersRunTheSameOnEveryPath) {
  CompareOnEveryPath(GetParam(), MakeOrderedPhaseCase);
}

TEST_P(PhasedComparisonTest, RandomJobsThatShareLinksInTurnsRunTheSameOnEveryPath) {
  CompareOnEveryPath(GetParam(), MakeTurnsPhaseCase);
}

TEST_P(PhasedComparisonTest, RandomJobsServedFirstComeRunTheSameOnEveryPath) {
  CompareOnEveryPath(GetParam(), MakeFirstComePhaseCase);
}

TEST_P(PhasedComparisonTest, RandomJobsWithNarrowLinksRunTheSameOnEveryPath) {
  CompareOnEveryPath(GetParam(), MakeNarrowPhaseCase);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PhasedComparisonTest, ::testing::Range(uint64_t{0}, kShards));

class PhasedZooTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PhasedZooTest, AModelRunsMemoisedAndTheSame) {
  const ZooOptions zoo{.platform = {.bandwidth_bytes_per_second = 1.25e9},
                       .variation = {.own = 0.1, .steps = 4}};
  const absl::StatusOr<Profile> profile = BuildZooProfile(GetParam(), zoo);
  ASSERT_TRUE(profile.ok()) << profile.status();
  for (const int32_t workers : {1, 2, 5, 16}) {
    for (const int64_t window : {int64_t{0}, int64_t{1} << 20}) {
      SCOPED_TRACE(::testing::Message() << workers << " workers, window " << window);
      ScenarioDraft asked{.workers = workers};
      if (window > 0) asked.servers().multiplexing = WindowDraft{.bytes = window};
      const Scenario scenario = Resolved(*profile, asked);
      const JobGraph job = JobFor(*profile, scenario);
      RunOptions options = OptionsFor(scenario, 6);
      options.warmup_steps = 2;
      const TracedRun plain = RunOn(EnginePath::kPlain, job, options);
      const TracedRun fast = RunOn(EnginePath::kMemoised, job, options);
      ASSERT_EQ(fast.result.path, EnginePath::kMemoised);
      ASSERT_NO_FATAL_FAILURE(ExpectSame(fast, plain));
      ASSERT_NO_FATAL_FAILURE(
          ExpectSame(RunUntraced(EnginePath::kMemoised, job, options), plain.result));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, PhasedZooTest, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const std::string_view name : ZooModels()) names.emplace_back(name);
                           return names;
                         }()),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace stepcast::testing::phased_comparison_test
