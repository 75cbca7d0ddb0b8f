// The trace of a run: every chunk, once, where and when it ran.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/simulation.h"
#include "core/engine/step_graph.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast {
namespace {

using ::testing::Each;

// A random job's run, its chunks in the order in which they began.
struct Traced {
  explicit Traced(uint64_t seed) : random_case(testing::MakeRandomCase(seed)), graph(StepGraph::Build(random_case.profile, random_case.scenario)) {
    RunOptions options = testing::EngineOptions(random_case, graph, seed);
    options.trace = &trace;
    options.trace_max = 1'000'000;
    absl::StatusOr<RunResult> run = Simulate(graph, options, NeverStop);
    EXPECT_TRUE(run.ok()) << run.status();
    result = *std::move(run);
    std::stable_sort(trace.begin(), trace.end(),
                     [](const ChunkRecord& a, const ChunkRecord& b) { return std::tie(a.start, a.end) < std::tie(b.start, b.end); });
  }

  testing::RandomCase random_case;
  StepGraph graph;
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
    const StepGraph& graph = traced.graph;
    std::map<std::pair<int32_t, int32_t>, std::vector<ChunkRecord>> steps;
    for (const ChunkRecord& record : traced.trace) steps[{record.worker, record.step}].push_back(record);
    std::vector<int> seconds_expected;
    for (OpIndex op = 0; op < graph.size(); ++op) seconds_expected.push_back(graph.IsTransfer(op) && graph.work(op).rest.ticks > 0 ? 1 : 0);
    for (size_t worker = 0; worker < traced.result.step_ends.size(); ++worker) {
      for (size_t n = 0; n < traced.result.step_ends[worker].size(); ++n) {
        std::vector<int> firsts(static_cast<size_t>(graph.size()));
        std::vector<int> seconds(static_cast<size_t>(graph.size()));
        Instant last{0};
        for (const ChunkRecord& record : steps[{static_cast<int32_t>(worker), static_cast<int32_t>(n)}]) {
          ++(record.second ? seconds : firsts)[static_cast<size_t>(record.op)];
          last = std::max(last, record.end);
        }
        EXPECT_THAT(firsts, Each(1));
        EXPECT_EQ(seconds, seconds_expected);
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
    if (scenario.workers > 1 || scenario.parameter_servers > 1 || !scenario.worker_groups.empty()) continue;
    const Traced traced(seed);
    for (const ChunkRecord& record : traced.trace) {
      if (!traced.graph.IsTransfer(record.op)) continue;
      const TransferWork& work = traced.graph.work(record.op);
      EXPECT_EQ(record.end - record.start, record.second ? work.rest : work.first);
      ++chunks;
    }
  }
  EXPECT_GT(chunks, 200);
}

TEST(SimulationTraceTest, ATraceEndsAtItsLimit) {
  testing::JobBuilder job;
  job.Compute(10);
  const Profile profile = job.Build();
  const Scenario scenario = testing::Resolved(profile);
  RunOptions options = testing::OptionsFor(scenario, 100);
  std::vector<ChunkRecord> trace;
  options.trace = &trace;
  options.trace_max = 10;
  ASSERT_TRUE(Simulate(StepGraph::Build(profile, scenario), options, NeverStop).ok());
  EXPECT_EQ(trace.size(), 10U);
}

}  // namespace
}  // namespace stepcast
