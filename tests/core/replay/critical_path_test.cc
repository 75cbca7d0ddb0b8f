// Critical paths against the longest path of an obvious implementation, and examples by hand.
#include "core/replay/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/stop_check.h"
#include "core/replay/execution.h"
#include "tests/core/replay/naive_longest_path.h"
#include "tests/core/replay/random_job.h"

namespace stepcast {
namespace {

class KeptChunks : public TraceSink {
 public:
  void OnStep(std::span<const ChunkRecord> chunks) override {
    records.insert(records.end(), chunks.begin(), chunks.end());
  }

  std::vector<ChunkRecord> records;
};

std::vector<ChunkRecord> ChunksOf(const JobGraph& job, RunOptions options) {
  KeptChunks kept;
  options.trace = &kept;
  EXPECT_TRUE(Simulate(job, options, NeverStop).ok());
  std::erase_if(kept.records,
                [&](const ChunkRecord& chunk) { return chunk.step >= options.steps_per_worker; });
  return kept.records;
}

// The path adds up to what was counted, its segments follow each other, and so do the workers' own
// times.
void CheckSums(const Execution& execution, const CriticalPath& path) {
  Instant at = path.begin;
  TimeByKind sums{};
  for (const PathSegment& segment : path.segments) {
    ASSERT_EQ(segment.begin, at);
    ASSERT_LT(segment.begin, segment.end);
    at = segment.end;
    Of(sums, segment.kind) += segment.length();
    if (segment.operation < 0) continue;
    const ExecutedOperation& operation = execution.operations[Index(segment.operation)];
    ASSERT_GE(segment.begin, operation.start);
    ASSERT_LE(segment.end, operation.end);
  }
  ASSERT_EQ(at, path.end);
  ASSERT_EQ(sums, path.by_kind);
  ASSERT_EQ(Total(sums), path.length());
  for (size_t worker = 0; worker < path.workers.size(); ++worker) {
    ASSERT_EQ(Total(path.workers[worker].own), execution.ends[worker] - execution.begins[worker]);
    for (const Span time : path.workers[worker].own) ASSERT_GE(time, Span{});
  }
}

TEST(CriticalPathTest, IsTheLongestPathOfAThousandRandomJobs) {
  int with_waiting = 0;
  int across_workers = 0;
  int joint = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const testing::RandomJob made = testing::MakeRandomJob(seed);
    const absl::StatusOr<Execution> execution = Execute(made.job, made.options, NeverStop);
    ASSERT_TRUE(execution.ok()) << execution.status();
    const CriticalPath path = FindCriticalPath(*execution, NeverStop).value();
    ASSERT_NO_FATAL_FAILURE(CheckSums(*execution, path));
    const std::vector<ChunkRecord> chunks = ChunksOf(made.job, made.options);
    // Nothing of a simulation is idle for no reason, but what waits for the start: all of the path
    // is work, and no other way is longer.
    for (size_t i = 1; i < path.segments.size(); ++i)
      ASSERT_NE(path.segments[i].kind, PathKind::kGap);
    ASSERT_EQ(path.length().ticks,
              testing::NaiveLongestPath(made.job, made.options.start_offsets, chunks).ticks);
    with_waiting += Of(path.by_kind, PathKind::kWaiting) > Span{} ? 1 : 0;
    joint += made.job.joint.ops.empty() ? 0 : 1;
    int32_t workers_on_path = 0;
    for (const WorkerShare& share : path.workers) workers_on_path += share.on_path > Span{} ? 1 : 0;
    across_workers += workers_on_path > 1 ? 1 : 0;
  }
  std::cout << "with waiting " << with_waiting << ", across workers " << across_workers
            << ", with collectives " << joint << "\n";
  EXPECT_GT(with_waiting, 150);
  EXPECT_GT(across_workers, 200);
  EXPECT_GT(joint, 300);
}

// Two computations and a collective after the first, of three workers.
JobGraph ThreeWorkers(std::vector<double> speeds) {
  ProgramDraft draft{.lanes = Lanes({{.role = LaneRole::kCompute}, {.role = LaneRole::kJoint}}),
                     .lane = {0, 1, 0},
                     .source = {0, 1, 2},
                     .size_bytes = {0, 0, 0},
                     .work = {{}, {}, {}},
                     .dependencies = {{.before = 0, .after = 1}, {.before = 1, .after = 2}},
                     .step_count = 1,
                     .durations = {Microseconds(10), Span{}, Microseconds(1)}};
  JobGraph job;
  job.programs = {
      std::make_shared<const Program>(Program::Make(std::move(draft), NeverStop).value())};
  job.program_of_worker = {0, 0, 0};
  job.compute_speeds = std::move(speeds);
  job.joint.ops = {1};
  job.joint.lengths = {Microseconds(5)};
  return job;
}

RunOptions OptionsOfThree(int32_t steps, int32_t warmup = 0) {
  return {.steps_per_worker = steps, .warmup_steps = warmup, .start_offsets = std::vector<Span>(3)};
}

TEST(CriticalPathTest, NamesTheStragglerAndWhatTheOthersWaitForIt) {
  // The first computation takes 10, 20 and 12.5 us; what comes after the collective 1, 2 and 1.25.
  const JobGraph job = ThreeWorkers({1, 0.5, 0.8});
  const Execution execution = Execute(job, OptionsOfThree(1), NeverStop).value();
  const CriticalPath path = FindCriticalPath(execution, NeverStop).value();
  EXPECT_EQ(path.length(), Microseconds(27));
  EXPECT_EQ(Of(path.by_kind, PathKind::kComputation), Microseconds(12) + Nanoseconds(2500));
  // From 12.5 to 20 all others wait.
  EXPECT_EQ(Of(path.by_kind, PathKind::kWaiting), Nanoseconds(7500));
  EXPECT_EQ(Of(path.by_kind, PathKind::kCommunication), Microseconds(5));
  EXPECT_EQ(Of(path.by_kind, PathKind::kGap), Span{});
  EXPECT_EQ(path.straggler, 1);
  EXPECT_EQ(path.workers[1].waited_for, Nanoseconds(7500));
  EXPECT_EQ(path.workers[1].on_path, Microseconds(22));
  EXPECT_EQ(Of(path.workers[0].own, PathKind::kWaiting), Microseconds(10));
  EXPECT_EQ(Of(path.workers[0].own, PathKind::kComputation), Microseconds(11));
  EXPECT_EQ(Of(path.workers[1].own, PathKind::kWaiting), Span{});
  ASSERT_EQ(path.segments.size(), 4U);
  EXPECT_EQ(path.segments[2].worker, -1);
}

// Whoever comes second says from when on all others wait, in whatever order they stand.
TEST(CriticalPathTest, CountsAsWaitingOnlyWhatAllOthersWait) {
  for (const std::vector<double>& speeds :
       std::vector<std::vector<double>>{{0.8, 0.5, 1}, {1, 0.8, 0.5}, {0.5, 1, 0.8}}) {
    const Execution execution = Execute(ThreeWorkers(speeds), OptionsOfThree(1), NeverStop).value();
    const CriticalPath path = FindCriticalPath(execution, NeverStop).value();
    EXPECT_EQ(Of(path.by_kind, PathKind::kWaiting), Nanoseconds(7500));
    ASSERT_GE(path.straggler, 0);
    EXPECT_EQ(speeds[Index(path.straggler)], 0.5);
  }
}

TEST(CriticalPathTest, NamesNobodyWhereWorkersAreAlike) {
  const Execution execution =
      Execute(ThreeWorkers({1, 1, 1}), OptionsOfThree(3), NeverStop).value();
  const CriticalPath path = FindCriticalPath(execution, NeverStop).value();
  EXPECT_EQ(path.straggler, -1);
  EXPECT_EQ(path.length(), Microseconds(48));
  EXPECT_EQ(Of(path.by_kind, PathKind::kWaiting), Span{});
}

// As a recording may have it: time between operations, and after the last.
TEST(CriticalPathTest, CountsGaps) {
  const auto at = [](int64_t us) { return Instant{} + Microseconds(us); };
  Execution execution{.workers = 1, .steps = 1};
  execution.operations = {
      {.op = 0, .start = at(0), .end = at(10)},
      {.op = 1, .start = at(13), .end = at(20)},
      {.op = 2, .kind = PathKind::kCommunication, .start = at(20), .end = at(26)}};
  execution.first_predecessor = {0, 0, 1, 2};
  execution.predecessors = {0, 1};
  execution.begins = {at(0)};
  execution.ends = {at(28)};
  const CriticalPath path = FindCriticalPath(execution, NeverStop).value();
  ASSERT_NO_FATAL_FAILURE(CheckSums(execution, path));
  EXPECT_EQ(path.segments.size(), 5U);
  EXPECT_EQ(Of(path.by_kind, PathKind::kComputation), Microseconds(17));
  EXPECT_EQ(Of(path.by_kind, PathKind::kCommunication), Microseconds(6));
  EXPECT_EQ(Of(path.by_kind, PathKind::kGap), Microseconds(5));
  EXPECT_EQ(path.workers[0].own, path.by_kind);
}

TEST(CriticalPathTest, CountsNoWarmUp) {
  const Execution execution =
      Execute(ThreeWorkers({1, 1, 1}), OptionsOfThree(3, 1), NeverStop).value();
  const CriticalPath path = FindCriticalPath(execution, NeverStop).value();
  EXPECT_EQ(path.begin, Instant{} + Microseconds(16));
  EXPECT_EQ(path.length(), Microseconds(32));
  EXPECT_EQ(Total(path.workers[0].own), Microseconds(32));
  ASSERT_NO_FATAL_FAILURE(CheckSums(execution, path));
}

TEST(ExecutionTest, RefusesWhatIsTooLarge) {
  const absl::StatusOr<Execution> execution =
      Execute(ThreeWorkers({1, 1, 1}), OptionsOfThree(3'000'000), NeverStop);
  ASSERT_FALSE(execution.ok());
  EXPECT_EQ(DetailsOf(execution.status()).reason, "EXECUTION_TOO_LARGE");
  EXPECT_EQ(DetailsOf(execution.status()).metadata.at("operations"), "27000000");
  EXPECT_EQ(DetailsOf(execution.status()).faults.at(0).field, "workers");
}

TEST(ExecutionTest, StopsWhenTold) {
  EXPECT_EQ(Execute(ThreeWorkers({1, 1, 1}), OptionsOfThree(100'000),
                    [] { return absl::CancelledError("enough"); })
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

// Wherever it is told to: during the simulation, while the execution is connected, along the path.
TEST(ExecutionTest, StopsAtEveryCheck) {
  const auto run = [](int after) {
    int asked = 0;
    const auto stop = [&] {
      return ++asked > after ? absl::CancelledError("enough") : absl::OkStatus();
    };
    const absl::StatusOr<Execution> execution =
        Execute(ThreeWorkers({1, 1, 1}), OptionsOfThree(3'000), stop);
    if (!execution.ok()) return execution.status();
    return FindCriticalPath(*execution, stop).status();
  };
  int checks = 0;
  while (absl::IsCancelled(run(checks))) ++checks;
  EXPECT_TRUE(run(checks).ok());
  // Of 27,000 operations: some tens of stretches of 4096.
  EXPECT_GT(checks, 30);
}

TEST(ExecutionTest, NamesKinds) {
  EXPECT_EQ(std::string(NameOf(PathKind::kServer)), "SERVER");
  EXPECT_EQ(std::string(NameOf(PathKind::kGap)), "GAP");
}

}  // namespace
}  // namespace stepcast
