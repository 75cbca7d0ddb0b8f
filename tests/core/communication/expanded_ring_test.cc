#include "core/communication/expanded_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/communication/job.h"
#include "core/model/made_steps.h"
#include "tests/core/engine/job_builder.h"

namespace stepcast::expanded_ring_test {
namespace {

using ::testing::HasSubstr;

// Ticks that the rounds of a collective, each rounded, and the collective may be off by.
int64_t RoundingOf(int32_t workers) { return 2 * int64_t{workers - 1} * 2 + 2; }

ProfileDraft DraftOf(const TrainingGraph& graph) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = graph.operations;
  RecordedStep& step = draft.steps.emplace_back();
  for (const int64_t duration : graph.durations_ns) {
    step.start_ns.push_back(0);
    step.end_ns.push_back(duration);
  }
  return draft;
}

// A millisecond of computation and one collective of so many bytes.
Profile OneCollective(Collective kind, int64_t bytes) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "computation", .resource = Resource::kWorker},
                      {.name = "collective",
                       .resource = Resource::kCollective,
                       .size_bytes = bytes,
                       .waiting_for = {0},
                       .collective = kind}};
  draft.steps = {{.start_ns = {0, 0}, .end_ns = {1'000'000, 0}}};
  return Profile::Create(std::move(draft)).value();
}

RunResult RunOf(const Profile& profile, const ScenarioDraft& draft, int32_t steps = 3) {
  const Scenario scenario = ResolveScenario(profile, draft).value();
  const JobProgram job = BuildJobProgram(profile, scenario, NeverStop).value();
  return Simulate(JobOf(job, nullptr, scenario), testing::OptionsFor(scenario, steps), NeverStop)
      .value();
}

// Milliseconds of the collective, as the run says when it began and ended.
double Milliseconds(const Profile& profile, int32_t workers, AllReduceDraft job,
                    std::vector<WorkerGroup> groups = {}) {
  job.fidelity = Fidelity::kExpanded;
  job.latency_seconds = job.latency_seconds.value_or(0);
  job.intra_node_latency_seconds = job.intra_node_latency_seconds.value_or(0);
  const RunResult result = RunOf(
      profile, {.workers = workers, .communication = job, .worker_groups = std::move(groups)});
  EXPECT_EQ(result.joint_times.size(), 1U);
  const JointTimes& times = result.joint_times.front();
  EXPECT_EQ(times.ready, times.begin);
  return ToSeconds(times.end - times.begin) / static_cast<double>(times.count) * 1e3;
}

TEST(ExpandedRingTest, EachKindTakesItsRounds) {
  // A chunk of a million bytes is a millisecond under way.
  for (const auto& [kind, milliseconds] :
       {std::pair(Collective::kAllReduce, 6.0), std::pair(Collective::kReduceScatter, 3.0),
        std::pair(Collective::kAllGather, 3.0), std::pair(Collective::kBroadcast, 4.0)}) {
    EXPECT_NEAR(Milliseconds(OneCollective(kind, 4'000'000), 4, {}), milliseconds, 1e-6);
  }
  const AllReduceDraft slow{
      .latency_seconds = 1e-4, .reduction_seconds_per_byte = 2e-10, .launch_seconds = 5e-5};
  EXPECT_NEAR(Milliseconds(OneCollective(Collective::kAllReduce, 4'000'000), 4, slow),
              0.05 + 6 * 1.1 + 3 * 0.2, 1e-6);
  EXPECT_NEAR(Milliseconds(OneCollective(Collective::kAllGather, 4'000'000), 4, slow),
              0.05 + 3 * 1.1, 1e-6);
  EXPECT_NEAR(Milliseconds(OneCollective(Collective::kAllReduce, 4'000'000), 1, slow), 0.05, 1e-6);
}

TEST(ExpandedRingTest, OneSlowLinkGivesTheRingAtItsRate) {
  const Profile profile = OneCollective(Collective::kAllReduce, 4'000'000);
  for (int32_t slow = 0; slow < 4; ++slow) {
    std::vector<WorkerGroup> groups;
    for (int32_t worker = 0; worker < 4; ++worker)
      groups.push_back({.count = 1, .bandwidth_bytes_per_second = worker == slow ? 2.5e8 : 1e9});
    // Both of its links: 4 ms a chunk.
    EXPECT_NEAR(Milliseconds(profile, 4, {}, groups), 24, 1e-6) << slow;
  }
}

TEST(ExpandedRingTest, RacksShareTheirLinkToTheSpine) {
  const Profile profile = OneCollective(Collective::kAllReduce, 6'000'000);
  // Two racks of three: one chunk of a million bytes leaves each in a round, and takes 2 ms.
  EXPECT_NEAR(
      Milliseconds(profile, 6, {.workers_per_rack = 3, .rack_bandwidth_bytes_per_second = 5e8}),
      2 * 5 * 2, 1e-6);
  // Fast enough: as without racks.
  EXPECT_NEAR(
      Milliseconds(profile, 6, {.workers_per_rack = 3, .rack_bandwidth_bytes_per_second = 2e9}), 10,
      1e-6);
  // All in one rack: its link is not used. Racks of four and two, the second not full.
  EXPECT_NEAR(
      Milliseconds(profile, 6, {.workers_per_rack = 8, .rack_bandwidth_bytes_per_second = 1e6}), 10,
      1e-6);
  EXPECT_NEAR(
      Milliseconds(profile, 6, {.workers_per_rack = 4, .rack_bandwidth_bytes_per_second = 2.5e8}),
      40, 1e-6);
}

// Two nodes of two: every other hop is inside, where a chunk takes a quarter of a millisecond. The
// link between them is never idle, so the ring is as slow as that; what COLLAPSED adds to it, the
// latency of each round, passes by while the next chunk is on its way.
TEST(ExpandedRingTest, InsideNodesLinksAreOthers) {
  const Profile profile = OneCollective(Collective::kAllReduce, 4'000'000);
  const AllReduceDraft fast{.workers_per_node = 2, .intra_node_bandwidth_bytes_per_second = 4e9};
  EXPECT_NEAR(Milliseconds(profile, 4, fast), 6, 1e-6);
  // On one node nothing else counts.
  EXPECT_NEAR(Milliseconds(profile, 2, fast), 2 * 0.5, 1e-6);
  AllReduceDraft latent = fast;
  latent.intra_node_latency_seconds = 1e-4;
  EXPECT_NEAR(Milliseconds(profile, 2, latent), 2 * 0.6, 1e-6);
  // By hand: worker 1 and 3 send across. Round r of theirs waits for what came inside in r - 1.
  latent.latency_seconds = 1e-4;
  latent.intra_node_latency_seconds = 2e-4;
  double across_sent = 0;  // end of the sending, in milliseconds
  double inside_sent = 0;
  double across_came = 0;
  double inside_came = 0;
  for (int round = 0; round < 6; ++round) {
    const double across_ready = round == 0 ? 0 : inside_came;
    const double inside_ready = round == 0 ? 0 : across_came;
    across_sent = std::max(across_sent, across_ready) + 1;
    inside_sent = std::max(inside_sent, inside_ready) + 0.25;
    across_came = std::max(across_sent, across_came) + 0.1;
    inside_came = std::max(inside_sent, inside_came) + 0.2;
  }
  EXPECT_NEAR(Milliseconds(profile, 4, latent), std::max(across_came, inside_came), 1e-6);
}

TEST(ExpandedRingTest, OnEqualLinks300RandomJobsEndTheirStepsAsCollapsed) {
  int64_t farthest = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed, 12});
    std::vector<TrainingLayer> layers;
    const auto count = 1 + random.Below(5);
    for (uint64_t i = 0; i < count; ++i) {
      const std::string name = std::to_string(i);
      layers.push_back(
          {.name = name,
           .parameters = {{.name = "w" + name,
                           .size_bytes = static_cast<int64_t>(1 + random.Below(5'000'000))}},
           .forward_ns = static_cast<int64_t>(1 + random.Below(900'000)),
           .backward_ns = static_cast<int64_t>(1 + random.Below(900'000))});
    }
    const Profile profile = Profile::Create(DraftOf(BuildAllReduceGraph(layers, 1000))).value();
    AllReduceDraft job{
        .latency_seconds = random.Below(2) == 0 ? 0 : 1e-7 * static_cast<double>(random.Below(999)),
        .reduction_seconds_per_byte =
            random.Below(2) == 0 ? 0 : 1e-11 * static_cast<double>(random.Below(99)),
        .launch_seconds = random.Below(2) == 0 ? 0 : 1e-6 * static_cast<double>(random.Below(99)),
        .sharding = static_cast<Sharding>(random.Below(4))};
    if (random.Below(2) == 0) {
      job.fusion = Buckets{.first_bytes = static_cast<int64_t>(1 + random.Below(4'000'000)),
                           .cap_bytes = static_cast<int64_t>(1 + random.Below(9'000'000))};
    }
    if (random.Below(4) == 0)
      job.partition_bytes = static_cast<int64_t>(500'000 + random.Below(3'000'000));
    if (random.Below(3) == 0) {
      // With latency a slow link among fast ones is where both differ.
      job.workers_per_rack = static_cast<int32_t>(1 + random.Below(8));
      job.rack_bandwidth_bytes_per_second = 1e8 + static_cast<double>(random.Below(9)) * 0.9e9;
      if (*job.workers_per_rack > 1) job.latency_seconds = 0;
      if (*job.workers_per_rack > 1) job.reduction_seconds_per_byte = 0;
    }
    ScenarioDraft draft{
        .workers = static_cast<int32_t>(2 + random.Below(15)),
        .bandwidth_bytes_per_second = 1e8 + static_cast<double>(random.Below(9)) * 1.37e9,
        .communication = job};
    if (random.Below(2) == 0) {
      draft.worker_groups = {{.count = 1, .compute_speed_factor = 0.5},
                             {.count = *draft.workers - 1, .compute_speed_factor = 1.25}};
    }
    constexpr int32_t kSteps = 4;
    const RunResult collapsed = RunOf(profile, draft, kSteps);
    job.fidelity = Fidelity::kExpanded;
    draft.communication = job;
    const RunResult expanded = RunOf(profile, draft, kSteps);
    EXPECT_EQ(expanded.path, EnginePath::kPlain);
    const auto collectives = static_cast<int64_t>(collapsed.joint_times.size());
    ASSERT_EQ(expanded.joint_times.size(), collapsed.joint_times.size());
    for (size_t worker = 0; worker < expanded.step_ends.size(); ++worker) {
      for (size_t step = 0; step < static_cast<size_t>(kSteps); ++step) {
        const int64_t off = std::abs(expanded.step_ends[worker][step].ticks -
                                     collapsed.step_ends[worker][step].ticks);
        farthest = std::max(farthest, off);
        ASSERT_LE(off, static_cast<int64_t>(step + 1) * collectives * RoundingOf(*draft.workers));
      }
    }
    // Between racks the others' links are idle, which only chunks tell.
    if (job.workers_per_rack.has_value()) continue;
    EXPECT_NEAR(expanded.exposed_communication_fraction, collapsed.exposed_communication_fraction,
                1e-6);
    EXPECT_NEAR(expanded.waiting_fraction, collapsed.waiting_fraction, 1e-6);
    EXPECT_NEAR(expanded.utilization[1], collapsed.utilization[1], 1e-6);
  }
  RecordProperty("farthest_ticks", static_cast<int>(farthest));
}

TEST(ExpandedRingTest, TooManyOperationsAreRefusedByTheLimitsName) {
  const StepPlan plan = {{.kind = Collective::kUnspecified},
                         {.kind = Collective::kAllReduce, .bytes = 10}};
  const Profile profile = OneCollective(Collective::kAllReduce, 10);
  const Scenario scenario =
      ResolveScenario(
          profile, {.workers = 8, .communication = AllReduceDraft{.fidelity = Fidelity::kExpanded}})
          .value();
  // The computation, two joint operations and two for each of 14 rounds.
  EXPECT_TRUE(CheckExpanded(profile, plan, scenario, {.max_expanded_operations = 31}).ok());
  const absl::Status status =
      CheckExpanded(profile, plan, scenario, {.max_expanded_operations = 30});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const ErrorDetails details = DetailsOf(status);
  EXPECT_EQ(details.reason, "SCENARIO_INVALID");
  ASSERT_EQ(details.faults.size(), 1U);
  EXPECT_EQ(details.faults[0].field, "all_reduce.fidelity");
  EXPECT_THAT(
      details.faults[0].description,
      HasSubstr("up to 31 operations, which is above the limit max_expanded_operations = 30"));
  EXPECT_TRUE(CheckExpanded(profile, plan, scenario, {.max_expanded_times = 31}).ok());
  EXPECT_THAT(
      std::string(CheckExpanded(profile, plan, scenario, {.max_expanded_times = 30}).message()),
      HasSubstr("in 1 recorded steps more times than the limit max_expanded_times = 30"));
  EXPECT_TRUE(CheckCollectives(profile, scenario).ok());
}

TEST(ExpandedRingTest, AProgramServesNoOtherNumberOfWorkersNorOtherLinks) {
  const Profile profile = OneCollective(Collective::kAllReduce, 1000);
  const auto scenario = [&](int32_t workers, double latency) {
    return ResolveScenario(profile,
                           {.workers = workers,
                            .communication = AllReduceDraft{.latency_seconds = latency,
                                                            .fidelity = Fidelity::kExpanded}})
        .value();
  };
  EXPECT_TRUE(HaveSameCollectiveProgram(scenario(4, 0), scenario(4, 0)));
  EXPECT_FALSE(HaveSameCollectiveProgram(scenario(4, 0), scenario(5, 0)));
  EXPECT_FALSE(HaveSameCollectiveProgram(scenario(4, 0), scenario(4, 1e-6)));
  const Scenario collapsed = ResolveScenario(profile, {.workers = 4}).value();
  EXPECT_FALSE(HaveSameCollectiveProgram(scenario(4, 0), collapsed));
}

}  // namespace
}  // namespace stepcast::expanded_ring_test
