// Jobs of any shape: several programs, meetings, releases between workers, joint drawing, and
// computation that communication slows down, against an obvious simulation.
#include "core/engine/job_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/engine/simulation.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/naive_job.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::job_graph_test {
namespace {

// Two processors at the worker's speed, one beside them, one at the hub, and a link.
Lanes AllRoles() {
  return Lanes({{.role = LaneRole::kCompute, .index = 0},
                {.role = LaneRole::kCompute, .index = 1},
                {.role = LaneRole::kHost},
                {.role = LaneRole::kHub},
                {.role = LaneRole::kLink, .network = 0}});
}

class RandomJob {
 public:
  explicit RandomJob(uint64_t seed)
      : random_({seed, 21}), gatherings_random_({seed, 22}), round_(Chance(60)) {}

  JobGraph Make() {
    JobGraph job;
    const int32_t workers = Pick(1, 4);
    const int32_t steps = Chance(50) ? 1 : 3;
    const int32_t size = Pick(2, 9);  // of the smallest program
    for (int32_t i = Chance(70) ? 1 : 2; i > 0; --i)
      job.programs.push_back(MakeProgram(size + (i == 1 ? 0 : Pick(0, 3)), steps));
    for (int32_t w = 0; w < workers; ++w)
      job.program_of_worker.push_back(Pick(0, static_cast<int32_t>(job.programs.size()) - 1));
    job.networks.emplace_back();
    if (Chance(60)) job.overlapped_speed = {.residual = LinkLevel::kUnit, .flows = Pick(1, 3)};
    if (Chance(30)) job.overlapped_speed.residual = LinkLevel::kUnit * 7 / 9;
    if (Chance(50)) job.drawing = Chance(50) ? StepDrawing::kJoint : StepDrawing::kReplay;
    AddMeetings(workers, size, job);
    for (int32_t i = Chance(50) ? Pick(1, 3) : 0; i > 0; --i) {
      const OpIndex before = Pick(0, size - 2);
      job.peer_edges.push_back(
          {.before = before, .after = Pick(before + 1, size - 1), .worker_offset = Pick(-2, 2)});
    }
    if (gatherings_random_.Below(2) == 0) AddGatherings(size, job);
    return job;
  }

  RunOptions Options(const JobGraph& job) {
    RunOptions options{.steps_per_worker = Pick(1, 6), .seed = random_.Below(1000)};
    for (int32_t w = 0; w < job.workers(); ++w)
      options.start_offsets.push_back(Chance(50) ? Span{} : Time(20));
    return options;
  }

 private:
  int32_t Pick(int32_t least, int32_t most) {
    return least +
           static_cast<int32_t>(random_.Below(static_cast<uint64_t>(int64_t{most} - least + 1)));
  }
  bool Chance(int32_t percent) { return Pick(1, 100) <= percent; }
  Span Time(int32_t most) {
    return round_ ? Microseconds(Pick(0, most))
                  : Span{static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most) * 2520))};
  }

  // Dependencies lead to greater numbers, so that no meeting waits for itself.
  std::shared_ptr<const Program> MakeProgram(int32_t size, int32_t steps) {
    ProgramDraft draft{.lanes = AllRoles(), .step_count = steps};
    for (OpIndex op = 0; op < size; ++op) {
      const LaneIndex lane = Pick(0, draft.lanes.count() - 1);
      draft.lane.push_back(lane);
      draft.source.push_back(op);
      draft.size_bytes.push_back(0);
      draft.work.push_back({.first = draft.lanes.IsLink(lane) ? Time(9) + Span{1} : Span{}});
      for (OpIndex before = std::max(0, op - 3); before < op; ++before) {
        if (Chance(40)) draft.dependencies.push_back({.before = before, .after = op});
      }
    }
    // A step takes time.
    const OpIndex last = size;
    draft.lane.push_back(0);
    draft.source.push_back(last);
    draft.size_bytes.push_back(0);
    draft.work.emplace_back();
    for (int32_t step = 0; step < steps; ++step) {
      for (OpIndex op = 0; op < last; ++op)
        draft.durations.push_back(draft.lanes.IsLink(draft.lane[Index(op)]) ? Span{} : Time(5));
      draft.durations.push_back(Microseconds(1));
    }
    return std::make_shared<const Program>(Program::Make(std::move(draft), NeverStop).value());
  }

  void AddMeetings(int32_t workers, int32_t size, JobGraph& job) {
    std::vector<std::vector<int32_t>> groups(Chance(70) ? 1 : 2);
    for (int32_t w = 0; w < workers; ++w) groups[Index(w) % groups.size()].push_back(w);
    job.groups = groups;
    const auto meet = [&](OpIndex op) {
      for (size_t group = 0; group < groups.size(); ++group) {
        if (!groups[group].empty())
          job.couplings.push_back({.op = op, .group = static_cast<GroupIndex>(group)});
      }
    };
    if (Chance(40)) meet(kStepEnd);
    for (OpIndex op = 0; op < size; ++op) {
      if (Chance(20)) meet(op);
    }
  }

  // Of its own step what comes before it in every program.
  void AddGatherings(int32_t size, JobGraph& job) {
    const auto chance = [&](uint64_t percent) { return gatherings_random_.Below(100) < percent; };
    for (OpIndex after = 1; after < size; ++after) {
      if (!chance(30)) continue;
      Gathering gathering{.after = after, .of_last_step = chance(50)};
      for (OpIndex before = 0; before < (gathering.of_last_step ? size : after); ++before) {
        if (chance(30)) gathering.befores.push_back(before);
      }
      if (!gathering.befores.empty()) job.gatherings.push_back(std::move(gathering));
    }
  }

  Random random_;
  Random gatherings_random_;
  bool round_;
};

std::vector<ChunkRecord> Sorted(std::vector<ChunkRecord> records, int32_t steps) {
  std::erase_if(records, [&](const ChunkRecord& record) { return record.step >= steps; });
  std::sort(records.begin(), records.end(), [](const ChunkRecord& a, const ChunkRecord& b) {
    return std::tie(a.worker, a.step, a.op) < std::tie(b.worker, b.step, b.op);
  });
  return records;
}

TEST(JobGraphTest, RunsAsTheObviousSimulationSaysToTheTick) {
  int met = 0;
  int released = 0;
  int gathered = 0;
  int slowed = 0;
  int of_several_programs = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomJob maker(seed);
    const JobGraph job = maker.Make();
    RunOptions options = maker.Options(job);
    testing::KeptTrace trace;
    options.trace = &trace;
    const absl::StatusOr<RunResult> result = Simulate(job, options, NeverStop);
    ASSERT_TRUE(result.ok()) << result.status();
    const std::vector<ChunkRecord> expected =
        Sorted(testing::SimulateJobNaively(job, options), options.steps_per_worker);
    const std::vector<ChunkRecord> found = Sorted(trace.records, options.steps_per_worker);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i], expected[i])
          << "worker " << found[i].worker << " step " << found[i].step << " op " << found[i].op
          << " from " << found[i].start.ticks << " to " << found[i].end.ticks << " instead of "
          << expected[i].start.ticks << " to " << expected[i].end.ticks;
    }
    for (const double utilization : result->utilization) EXPECT_LE(utilization, 1 + 1e-9);
    met += job.couplings.empty() || job.workers() == 1 ? 0 : 1;
    released += job.peer_edges.empty() || job.workers() == 1 ? 0 : 1;
    gathered += job.gatherings.empty() || job.workers() == 1 ? 0 : 1;
    slowed += job.slows_computation() ? 1 : 0;
    of_several_programs += job.programs.size() > 1 ? 1 : 0;
  }
  // Or the comparison says less than it claims.
  EXPECT_GT(met, 1000);
  EXPECT_GT(released, 800);
  EXPECT_GT(gathered, 600);
  EXPECT_GT(slowed, 1000);
  EXPECT_GT(of_several_programs, 700);
}

// Hubs and workers' own links written as paths run as they do.
TEST(JobGraphTest, PathsOfTwoLinksRunAsHubsDo) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const testing::RandomCase random_case = testing::MakeRandomCase(seed);
    if (!std::holds_alternative<EqualShares>(random_case.scenario.servers().link_sharing)) continue;
    JobGraph job = testing::EngineJob(random_case);
    const RunOptions options = testing::EngineOptions(random_case, seed);
    const RunResult with_hubs = Simulate(job, options, NeverStop).value();
    const int32_t hubs = random_case.scenario.servers().servers;
    for (NetworkSpec& network : job.networks) {
      network.links.assign(Index(hubs), PathNetwork::Link{});
      for (const int64_t capacity : network.worker_capacities) {
        const auto own = static_cast<LinkIndex>(network.links.size());
        network.links.push_back(
            {.capacity = std::min(capacity, LinkLevel::kUnit * hubs), .is_shared = false});
        for (LinkIndex hub = 0; hub < hubs; ++hub)
          network.paths.push_back({.links = {hub, own}, .count = 2});
      }
    }
    const RunResult with_paths = Simulate(job, options, NeverStop).value();
    ASSERT_EQ(with_paths.step_ends, with_hubs.step_ends);
    ASSERT_EQ(with_paths.utilization, with_hubs.utilization);
    ++compared;
  }
  EXPECT_GT(compared, 150);
}

// A ring of three: each worker's second operation waits for the first of the next worker.
TEST(JobGraphTest, ARingPassesOnWhatAPeerHasDone) {
  ProgramDraft draft{.lanes = Lanes({{.role = LaneRole::kCompute}}), .step_count = 1};
  draft.lane = {0, 0};
  draft.source = {0, 1};
  draft.size_bytes = {0, 0};
  draft.work = {{}, {}};
  draft.dependencies = {{.before = 0, .after = 1}};
  draft.durations = {Microseconds(2), Microseconds(1)};
  JobGraph job;
  job.programs = {
      std::make_shared<const Program>(Program::Make(std::move(draft), NeverStop).value())};
  job.program_of_worker = {0, 0, 0};
  job.peer_edges = {{.before = 0, .after = 1, .worker_offset = 1}};
  RunOptions options{.steps_per_worker = 1,
                     .start_offsets = {Span{}, Microseconds(5), Microseconds(1)},
                     .keep_step_ends = true};
  const RunResult result = Simulate(job, options, NeverStop).value();
  EXPECT_EQ(result.step_ends[0].front(), Instant{} + Microseconds(8));  // its peer was done at 7
  EXPECT_EQ(result.step_ends[1].front(), Instant{} + Microseconds(8));
  EXPECT_EQ(result.step_ends[2].front(), Instant{} + Microseconds(4));
}

}  // namespace
}  // namespace stepcast::job_graph_test
