// The trace of a run: every chunk, once, where and when it ran.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::simulation_trace_test {
namespace {

// A random job's run, its chunks in the order in which they began.
struct Traced {
  explicit Traced(uint64_t seed)
      : random_case(testing::MakeRandomCase(seed)),
        job(testing::EngineJob(random_case)),
        graph(*job.programs.front()) {
    RunOptions options = testing::EngineOptions(random_case, seed);
    testing::KeptTrace kept;
    options.trace = &kept;
    absl::StatusOr<RunResult> run = Simulate(job, options, NeverStop);
    EXPECT_TRUE(run.ok()) << run.status();
    result = *std::move(run);
    trace = std::move(kept.records);
    std::stable_sort(trace.begin(), trace.end(), [](const ChunkRecord& a, const ChunkRecord& b) {
      return std::tie(a.start, a.end) < std::tie(b.start, b.end);
    });
  }

  testing::RandomCase random_case;
  JobGraph job;
  const Program& graph;
  std::vector<ChunkRecord> trace;
  RunResult result;
};

constexpr uint64_t kSeeds = 100;

TEST(SimulationTraceTest, ALaneRunsOneChunkAtATime) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Traced traced(seed);
    std::map<std::pair<int32_t, LaneIndex>, Instant> busy_until;
    for (const ChunkRecord& record : traced.trace) {
      Instant& until = busy_until[{record.worker, traced.graph.lane(record.op)}];
      ASSERT_GE(record.start, until);
      ASSERT_GE(record.end, record.start);
      until = record.end;
    }
  }
}

TEST(SimulationTraceTest, EveryStepHoldsEachOperationOnceAndEndsWithItsLast) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Traced traced(seed);
    const Program& graph = traced.graph;
    std::map<std::pair<int32_t, int32_t>, std::vector<ChunkRecord>> steps;
    for (const ChunkRecord& record : traced.trace)
      steps[{record.worker, record.step}].push_back(record);
    std::vector<std::vector<int32_t>> expected(static_cast<size_t>(graph.size()));
    for (OpIndex op = 0; op < graph.size(); ++op) {
      expected[static_cast<size_t>(op)].resize(
          graph.IsTransfer(op) ? static_cast<size_t>(graph.work(op).services) : 1);
      std::iota(expected[static_cast<size_t>(op)].begin(), expected[static_cast<size_t>(op)].end(),
                0);
    }
    for (size_t worker = 0; worker < traced.result.step_ends.size(); ++worker) {
      for (size_t n = 0; n < traced.result.step_ends[worker].size(); ++n) {
        std::vector<std::vector<int32_t>> services(static_cast<size_t>(graph.size()));
        Instant last{0};
        for (const ChunkRecord& record :
             steps[{static_cast<int32_t>(worker), static_cast<int32_t>(n)}]) {
          services[static_cast<size_t>(record.op)].push_back(record.service);
          last = std::max(last, record.end);
        }
        EXPECT_EQ(services, expected);
        EXPECT_EQ(last, traced.result.step_ends[worker][n]);
      }
    }
  }
}

// Alone on one server, every chunk takes exactly its work.
TEST(SimulationTraceTest, OneWorkerOnOneServerTakesTheWorkItself) {
  int chunks = 0;
  for (uint64_t seed = 1; seed <= 10 * kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Scenario& scenario = testing::MakeRandomCase(seed).scenario;
    if (scenario.workers > 1 || scenario.servers().servers > 1 || !scenario.worker_groups.empty())
      continue;
    const Traced traced(seed);
    for (const ChunkRecord& record : traced.trace) {
      if (!traced.graph.IsTransfer(record.op)) continue;
      const TransferWork& work = traced.graph.work(record.op);
      EXPECT_EQ(record.end - record.start, work.OfService(record.service));
      ++chunks;
    }
  }
  EXPECT_GT(chunks, 200);
}

TEST(SimulationTraceTest, OnlyWholeStepsAreTraced) {
  testing::JobBuilder job;
  const int32_t download = job.Download(1000);
  job.Compute(2000, {download});
  const Profile profile = job.Build();
  // The second worker has begun its second step when both have ended their first.
  const Scenario scenario =
      testing::Resolved(profile, {.workers = 2, .start_offsets_ns = {0, 2000}});
  RunOptions options = testing::OptionsFor(scenario, 1);
  testing::KeptTrace trace;
  options.trace = &trace;
  ASSERT_TRUE(Simulate(testing::JobFor(profile, scenario), options, NeverStop).ok());
  ASSERT_EQ(trace.records.size(), 4U);
  for (const ChunkRecord& record : trace.records) EXPECT_EQ(record.step, 0);
}

}  // namespace
}  // namespace stepcast::simulation_trace_test
