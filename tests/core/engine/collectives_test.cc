// Jobs whose workers meet in collectives: the engines against exact answers, and against an obvious
// simulation over many seeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/communication/job.h"
#include "core/engine/simulation.h"
#include "core/engine/step_sampler.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "tests/core/engine/naive_collectives.h"
#include "tests/support/profile_json.h"

namespace stepcast::collectives_test {
namespace {

using ::nlohmann::json;

RunOptions OptionsFor(const Scenario& scenario, int32_t steps, int32_t warmup) {
  RunOptions options{.steps_per_worker = steps, .warmup_steps = warmup, .keep_step_ends = true};
  options.start_offsets.resize(static_cast<size_t>(scenario.workers));
  for (size_t i = 0; i < scenario.start_offsets_ns.size(); ++i)
    options.start_offsets[i] = Nanoseconds(scenario.start_offsets_ns[i]);
  return options;
}

// The ends of steps that an obvious simulation finds, with the recorded steps that the engine
// draws.
std::vector<std::vector<int64_t>> NaiveEnds(const Profile& profile, const Scenario& scenario,
                                            const JobGraph& graph, const RunOptions& options,
                                            int32_t steps, std::vector<int32_t> threads = {}) {
  std::vector<std::vector<int32_t>> drawn;
  for (int32_t worker = 0; worker < scenario.workers; ++worker) {
    StepSampler sampler(graph, options, worker);
    std::vector<int32_t>& of_worker = drawn.emplace_back();
    for (int32_t step = 0; step < 3 * steps; ++step) of_worker.push_back(sampler.Next(step));
  }
  return testing::NaiveStepEnds(
      {.profile = profile,
       .scenario = scenario,
       .recorded =
           [&](int32_t worker, int32_t step) {
             return drawn[static_cast<size_t>(worker)][static_cast<size_t>(step)];
           },
       .threads = std::move(threads)},
      steps);
}

// Factors of steps as a model of them might say, of a job with one recorded worker.
std::shared_ptr<const StepScaling> RandomScaling(int32_t steps, Random& random) {
  std::vector<double> logarithms;
  for (int32_t step = 0; step < steps; ++step) logarithms.push_back(0.2 * random.Normal());
  const double own = random.Below(4) == 0 ? 0 : 0.3 * random.Unit();
  const double common = random.Below(2) == 0 ? 0 : 0.2 * random.Unit();
  return std::make_shared<const StepScaling>(std::vector<std::vector<double>>{logarithms}, own,
                                             common, random.Unit() - 0.5);
}

const json& Cases() {
  static const json* const cases =
      new json(testing::ReadJsonFile(STEPCAST_SOURCE_DIR "/tests/data/golden/all_reduce.json"));
  return *cases;
}

CollectiveAlgorithm AlgorithmOf(const std::string& name) {
  if (name == "HIERARCHICAL") return CollectiveAlgorithm::kHierarchical;
  if (name == "HALVING_DOUBLING") return CollectiveAlgorithm::kHalvingDoubling;
  EXPECT_EQ(name, "RING");
  return CollectiveAlgorithm::kRing;
}

ScenarioDraft DraftOf(const json& asked) {
  AllReduceDraft job;
  job.algorithm = AlgorithmOf(asked.at("algorithm").get<std::string>());
  job.latency_seconds = asked.at("latency_seconds").get<double>();
  job.reduction_seconds_per_byte = asked.at("reduction_seconds_per_byte").get<double>();
  job.workers_per_node = asked.at("workers_per_node").get<int32_t>();
  job.launch_seconds = asked.at("launch_seconds").get<double>();
  job.intra_node_bandwidth_bytes_per_second =
      asked.at("intra_node_bandwidth_bytes_per_second").get<double>();
  job.intra_node_latency_seconds = asked.at("intra_node_latency_seconds").get<double>();
  if (!asked.at("bucket_bytes").is_null()) {
    job.fusion = Buckets{.first_bytes = asked.at("first_bucket_bytes").get<int64_t>(),
                         .cap_bytes = asked.at("bucket_bytes").get<int64_t>()};
  }
  ScenarioDraft draft;
  draft.workers = asked.at("workers").get<int32_t>();
  draft.bandwidth_bytes_per_second = asked.at("bandwidth_bytes_per_second").get<double>();
  draft.communication = job;
  for (const json& offset : asked.at("start_offsets_ns"))
    draft.start_offsets_ns.push_back(offset.get<int64_t>());
  for (const json& group : asked.at("worker_groups")) {
    draft.worker_groups.push_back(
        {.count = group.at("count").get<int32_t>(),
         .compute_speed_factor = group.at("compute_speed_factor").get<double>()});
  }
  return draft;
}

class CollectivesGoldenTest : public ::testing::TestWithParam<size_t> {};

TEST_P(CollectivesGoldenTest, AgreesToOneMillionth) {
  const json& golden = Cases().at(GetParam());
  const absl::StatusOr<Profile> profile =
      Profile::Create(testing::ProfileFromJson(golden.at("profile")));
  ASSERT_TRUE(profile.ok()) << profile.status();
  const absl::StatusOr<Scenario> scenario =
      ResolveScenario(*profile, DraftOf(golden.at("scenario")));
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  const absl::StatusOr<JobProgram> program = BuildJobProgram(*profile, *scenario, NeverStop);
  ASSERT_TRUE(program.ok()) << program.status();
  RunOptions options = OptionsFor(*scenario, golden.at("steps_per_worker").get<int32_t>(),
                                  golden.at("warmup_steps").get<int32_t>());
  const auto expected = golden.at("steps_per_second").get<double>();
  for (const EnginePath path : {EnginePath::kPlain, EnginePath::kMemoised}) {
    options.fastest_path = path;
    const absl::StatusOr<RunResult> result =
        Simulate(JobOf(*program, nullptr, *scenario), options, NeverStop);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->measured);
    EXPECT_NEAR(result->steps_per_second, expected, expected * 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(AllReduce, CollectivesGoldenTest, ::testing::Range(size_t{0}, size_t{60}));

TEST(CollectivesGoldenFileTest, HasAsManyCasesAsAreRun) { EXPECT_EQ(Cases().size(), 60U); }

// A random job: half of them shaped as training steps, the others any graph whose collectives can
// run in graph order; round numbers in half, so that many things happen at one instant.
struct RandomJob {
  ProfileDraft profile;
  ScenarioDraft scenario;
};

RandomJob MakeJob(uint64_t seed) {
  Random random({seed, 77});
  const bool round = random.Below(2) == 0;
  const bool trains = random.Below(2) == 0;
  const auto time = [&] {
    return static_cast<int64_t>(round ? random.Below(4) * 1000 : random.Below(1'000'003));
  };
  RandomJob job;
  job.profile.batch_size = 1;
  job.profile.platform.bandwidth_bytes_per_second = round ? 1e9 : 0.37e9;
  std::vector<Operation>& operations = job.profile.operations;
  const auto add = [&](Resource resource, std::vector<int32_t> waiting) {
    Operation operation{.name = "o" + std::to_string(operations.size()), .resource = resource};
    operation.waiting_for = std::move(waiting);
    if (resource == Resource::kCollective) {
      operation.size_bytes =
          static_cast<int64_t>(1 + random.Below(round ? 4 : 3'000'000)) * (round ? 1000 : 1);
      operation.collective = random.Below(4) > 0 ? Collective::kAllReduce
                                                 : static_cast<Collective>(2 + random.Below(3));
    }
    operations.push_back(std::move(operation));
    return static_cast<int32_t>(operations.size()) - 1;
  };
  const auto streams = static_cast<int32_t>(1 + random.Below(3));
  if (trains) {
    const auto layers = static_cast<int32_t>(1 + random.Below(6));
    int32_t last = add(Resource::kWorker, {});
    for (int32_t i = 1; i < layers; ++i) last = add(Resource::kWorker, {last});
    std::vector<int32_t> gradients;
    for (int32_t i = 0; i < layers; ++i) {
      last = add(Resource::kWorker, {last});
      if (random.Below(4) > 0) gradients.push_back(add(Resource::kCollective, {last}));
    }
    for (const int32_t gradient : gradients) {
      if (random.Below(2) == 0) add(Resource::kWorker, {gradient, last});
    }
    gradients.push_back(last);
    add(Resource::kWorker, gradients);
  } else {
    const auto count = static_cast<int32_t>(2 + random.Below(14));
    for (int32_t i = 0; i < count; ++i) {
      std::vector<int32_t> waiting;
      for (int32_t before = 0; before < i; ++before) {
        if (random.Below(4) == 0) waiting.push_back(before);
      }
      const int32_t op =
          add(random.Below(3) == 0 && i > 0 ? Resource::kCollective : Resource::kWorker, waiting);
      if (operations[static_cast<size_t>(op)].resource == Resource::kWorker)
        operations[static_cast<size_t>(op)].stream =
            static_cast<int32_t>(random.Below(static_cast<uint64_t>(streams)));
    }
  }
  for (uint64_t step = 0; step < 1 + random.Below(3); ++step) {
    RecordedStep& recorded = job.profile.steps.emplace_back();
    for (size_t i = 0; i < operations.size(); ++i) {
      recorded.start_ns.push_back(0);
      recorded.end_ns.push_back(time() + (i == 0 ? 1 : 0));
    }
  }
  AllReduceDraft how;
  how.latency_seconds = 0;
  if (random.Below(2) == 0) how.latency_seconds = round ? 1e-6 : 3.3e-5;
  if (random.Below(2) == 0) how.launch_seconds = round ? 1e-6 : 1.7e-5;
  if (random.Below(2) == 0) how.reduction_seconds_per_byte = round ? 1e-9 : 0.7e-10;
  job.scenario.workers = static_cast<int32_t>(1 + random.Below(5));
  for (int32_t i = 0; i < *job.scenario.workers && random.Below(2) == 0; ++i) {
    job.scenario.start_offsets_ns.resize(static_cast<size_t>(*job.scenario.workers));
    job.scenario.start_offsets_ns[static_cast<size_t>(i)] = time();
  }
  if (random.Below(3) == 0) {
    for (int32_t i = 0; i < *job.scenario.workers; ++i) {
      job.scenario.worker_groups.push_back(
          {.count = 1,
           .compute_speed_factor = 0.5 + static_cast<double>(random.Below(3)),
           .bandwidth_bytes_per_second = 1e8 * static_cast<double>(1 + random.Below(9))});
    }
  }
  if (random.Below(2) == 0) {
    how.fusion = Buckets{.first_bytes = static_cast<int64_t>(1 + random.Below(6000)),
                         .cap_bytes = static_cast<int64_t>(1 + random.Below(3'000'000))};
  }
  job.scenario.communication = how;
  return job;
}

TEST(CollectivesComparisonTest, AThousandRandomJobsEndTheirStepsAsAnObviousSimulationSays) {
  constexpr int32_t kSteps = 7;
  int compared = 0;
  int refused = 0;
  int64_t farthest = 0;
  for (uint64_t seed = 0; compared < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const RandomJob job = MakeJob(seed);
    const absl::StatusOr<Profile> profile = Profile::Create(job.profile);
    ASSERT_TRUE(profile.ok()) << profile.status();
    if (!profile->has_collectives()) continue;
    const absl::StatusOr<Scenario> scenario = ResolveScenario(*profile, job.scenario);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const absl::StatusOr<JobProgram> program = BuildJobProgram(*profile, *scenario, NeverStop);
    if (!program.ok()) {
      // Fused operations may have come to wait for each other.
      ASSERT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
      ASSERT_TRUE(std::holds_alternative<Buckets>(
          std::get<AllReduceDraft>(job.scenario.communication).fusion));
      ++refused;
      continue;
    }
    const JobGraph graph = JobOf(*program, nullptr, *scenario);
    RunOptions options = OptionsFor(*scenario, kSteps, 0);
    ProfileDraft fused = job.profile;
    if (const auto* rule = std::get_if<Buckets>(&scenario->all_reduce().fusion))
      fused = testing::NaivelyFused(job.profile, rule->first_bytes, rule->cap_bytes);
    const absl::StatusOr<Profile> plain_profile = Profile::Create(fused);
    ASSERT_TRUE(plain_profile.ok()) << plain_profile.status();
    const auto expected = NaiveEnds(*plain_profile, *scenario, graph, options, kSteps);
    for (const EnginePath path : {EnginePath::kPlain, EnginePath::kMemoised}) {
      options.fastest_path = path;
      const absl::StatusOr<RunResult> result = Simulate(graph, options, NeverStop);
      ASSERT_TRUE(result.ok()) << result.status();
      for (size_t worker = 0; worker < expected.size(); ++worker) {
        ASSERT_GE(result->step_ends[worker].size(), static_cast<size_t>(kSteps));
        for (size_t step = 0; step < static_cast<size_t>(kSteps); ++step) {
          const int64_t off = result->step_ends[worker][step].ticks - expected[worker][step];
          farthest = std::max(farthest, std::abs(off));
          // A collective's seconds become ticks by another order of multiplications.
          ASSERT_LE(std::abs(off), 3 * 20 * kSteps) << "worker " << worker << " step " << step;
        }
      }
    }
    ++compared;
  }
  EXPECT_GT(refused, 0);
  RecordProperty("farthest_ticks", static_cast<int>(farthest));
}

TEST(CollectivesComparisonTest,
     FiveHundredRandomJobsInCyclesEndTheirStepsAsAnObviousSimulationSays) {
  constexpr int32_t kSteps = 6;
  int compared = 0;
  int fused = 0;
  for (uint64_t seed = 0; compared < 500; ++seed) {
    SCOPED_TRACE(seed);
    RandomJob job = MakeJob(seed);
    Random random({seed, 79});
    auto& how = std::get<AllReduceDraft>(job.scenario.communication);
    how.fusion = HorovodDraft{
        .fusion_bytes =
            static_cast<int64_t>(1 + random.Below(random.Below(2) == 0 ? 9000 : 9'000'000)),
        .cycle_seconds =
            1e-6 * static_cast<double>(1 + random.Below(random.Below(2) == 0 ? 5 : 3000))};
    const absl::StatusOr<Profile> profile = Profile::Create(job.profile);
    ASSERT_TRUE(profile.ok()) << profile.status();
    if (!profile->has_collectives()) continue;
    const absl::StatusOr<Scenario> scenario = ResolveScenario(*profile, job.scenario);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const absl::StatusOr<JobProgram> program = BuildJobProgram(*profile, *scenario, NeverStop);
    ASSERT_TRUE(program.ok()) << program.status();
    const JobGraph graph = JobOf(*program, nullptr, *scenario);
    const RunOptions options = OptionsFor(*scenario, kSteps, 0);
    const auto expected = NaiveEnds(*profile, *scenario, graph, options, kSteps);
    const absl::StatusOr<RunResult> result = Simulate(graph, options, NeverStop);
    ASSERT_TRUE(result.ok()) << result.status();
    for (size_t worker = 0; worker < expected.size(); ++worker) {
      for (size_t step = 0; step < static_cast<size_t>(kSteps); ++step) {
        ASSERT_EQ(result->step_ends[worker][step].ticks, expected[worker][step])
            << "worker " << worker << " step " << step;
      }
    }
    // Groups of several end together.
    for (size_t i = 1; i < result->joint_times.size(); ++i)
      fused += result->joint_times[i].end == result->joint_times[i - 1].end ? 1 : 0;
    ++compared;
  }
  EXPECT_GT(fused, 100);
}

// Contention of every kind beside the random job, whose gradients are in random groups, in buckets,
// in cycles, or alone.
void Contend(Random& random, RandomJob& job) {
  auto& how = std::get<AllReduceDraft>(job.scenario.communication);
  const auto threads = [&] { return static_cast<int32_t>(1 + random.Below(4096)); };
  const auto rate = [&] {
    const double most = 1e8 * static_cast<double>(1 + random.Below(30));
    return TransferRate{.gamma1 = most,
                        .gamma2 = random.Below(3) == 0 ? 0 : most * random.Unit(),
                        .gamma3 = random.Unit() * 0.1};
  };
  Contention& contention = how.contention.emplace();
  contention.alpha2 = random.Below(4) == 0 ? 0 : 2e-4 * random.Unit();
  if (random.Below(4) == 0) contention.alpha1 = 0.9;
  if (random.Below(4) == 0) contention.gamma4 = 0.5;
  contention.alone = rate();
  contention.overlapped = random.Below(4) == 0 ? contention.alone : rate();
  how.threads = threads();
  if (random.Below(3) == 0) return;
  if (random.Below(3) == 0) {
    how.fusion = HorovodDraft{
        .fusion_bytes =
            static_cast<int64_t>(1 + random.Below(random.Below(2) == 0 ? 9000 : 9'000'000)),
        .cycle_seconds =
            1e-6 * static_cast<double>(1 + random.Below(random.Below(2) == 0 ? 5 : 3000))};
    return;
  }
  GradientGroups& groups = how.fusion.emplace<GradientGroups>();
  for (const Operation& operation : job.profile.operations) {
    if (operation.collective != Collective::kAllReduce) continue;
    if (groups.groups.empty() || random.Below(3) == 0) {
      GradientGroup& group = groups.groups.emplace_back();
      if (random.Below(2) == 0) group.threads = threads();
    }
    groups.groups.back().operations.push_back(operation.name);
  }
}

TEST(CollectivesComparisonTest, AThousandJobsWithContentionEndTheirStepsAsAnObviousSimulationSays) {
  constexpr int32_t kSteps = 6;
  int compared = 0;
  int grouped = 0;
  int in_cycles = 0;
  int slower = 0;
  int faster = 0;
  for (uint64_t seed = 0; compared < 1000; ++seed) {
    SCOPED_TRACE(seed);
    RandomJob job = MakeJob(seed);
    Random random({seed, 80});
    Contend(random, job);
    const absl::StatusOr<Profile> profile = Profile::Create(job.profile);
    ASSERT_TRUE(profile.ok()) << profile.status();
    if (!profile->has_collectives()) continue;
    const absl::StatusOr<Scenario> scenario = ResolveScenario(*profile, job.scenario);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const absl::StatusOr<JobProgram> program = BuildJobProgram(*profile, *scenario, NeverStop);
    if (!program.ok()) continue;  // fused operations have come to wait for each other
    const JobGraph graph = JobOf(*program, nullptr, *scenario);
    const RunOptions options = OptionsFor(*scenario, kSteps, 0);
    ProfileDraft fused = job.profile;
    std::vector<int32_t> threads;
    if (const auto* rule = std::get_if<Buckets>(&scenario->all_reduce().fusion))
      fused = testing::NaivelyFused(job.profile, rule->first_bytes, rule->cap_bytes);
    if (const auto* given = std::get_if<GradientGroups>(&scenario->all_reduce().fusion)) {
      std::vector<int32_t> counts;
      for (const GradientGroup& group : given->groups) {
        counts.push_back(static_cast<int32_t>(group.operations.size()));
        threads.push_back(group.threads.value_or(0));
      }
      fused = testing::NaivelyGrouped(job.profile, counts);
      ++grouped;
    }
    in_cycles += graph.joint.cycles.has_value() ? 1 : 0;
    const absl::StatusOr<Profile> plain_profile = Profile::Create(fused);
    ASSERT_TRUE(plain_profile.ok()) << plain_profile.status();
    const auto expected = NaiveEnds(*plain_profile, *scenario, graph, options, kSteps, threads);
    const absl::StatusOr<RunResult> result = Simulate(graph, options, NeverStop);
    ASSERT_TRUE(result.ok()) << result.status();
    for (size_t worker = 0; worker < expected.size(); ++worker) {
      for (size_t step = 0; step < static_cast<size_t>(kSteps); ++step) {
        ASSERT_EQ(result->step_ends[worker][step].ticks, expected[worker][step])
            << "worker " << worker << " step " << step;
      }
    }
    for (const JointPace& pace : graph.joint.paces) {
      slower += pace.beside_computation.residual < pace.alone.residual ? 1 : 0;
      faster += pace.beside_computation.residual > pace.alone.residual ? 1 : 0;
    }
    ++compared;
  }
  EXPECT_GT(grouped, 300);
  EXPECT_GT(in_cycles, 150);
  EXPECT_GT(slower, 300);
  EXPECT_GT(faster, 300);
}

// Collectives and computation that slow each other down, in buckets, in cycles, or alone, and
// several at once.
TEST(CollectivesComparisonTest,
     AThousandJobsWhoseCollectivesAreSlowedEndTheirStepsAsAnObviousSimulationSays) {
  constexpr int32_t kSteps = 6;
  int compared = 0;
  int in_cycles = 0;
  int in_buckets = 0;
  int at_once = 0;
  int both = 0;
  int slowed = 0;
  for (uint64_t seed = 0; compared < 1000; ++seed) {
    SCOPED_TRACE(seed);
    RandomJob job = MakeJob(seed);
    Random random({seed, 81});
    auto& how = std::get<AllReduceDraft>(job.scenario.communication);
    how.collective_slowdown = 1 + (random.Below(4) == 0 ? 98 : 3) * random.Unit();
    if (random.Below(2) == 0) how.overlap_slowdown = 1 + 2 * random.Unit();
    if (random.Below(4) == 0) {
      how.fusion =
          HorovodDraft{.fusion_bytes = static_cast<int64_t>(1 + random.Below(9000)),
                       .cycle_seconds = 1e-6 * static_cast<double>(1 + random.Below(3000))};
    }
    const absl::StatusOr<Profile> profile = Profile::Create(job.profile);
    ASSERT_TRUE(profile.ok()) << profile.status();
    if (!profile->has_collectives()) continue;
    absl::StatusOr<Scenario> scenario = ResolveScenario(*profile, job.scenario);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    auto& resolved = std::get<AllReduce>(scenario->communication);
    if (!std::holds_alternative<HorovodDraft>(how.fusion) && random.Below(2) == 0) {
      // Of measured collectives, which take a ring's times here.
      resolved.concurrent_collectives = static_cast<int32_t>(2 + random.Below(3));
      ++at_once;
    }
    const absl::StatusOr<JobProgram> program = BuildJobProgram(*profile, *scenario, NeverStop);
    if (!program.ok()) continue;  // fused operations have come to wait for each other
    const JobGraph graph = JobOf(*program, nullptr, *scenario);
    EXPECT_TRUE(graph.joint.has_paces());
    const RunOptions options = OptionsFor(*scenario, kSteps, 0);
    ProfileDraft fused = job.profile;
    if (const auto* rule = std::get_if<Buckets>(&resolved.fusion)) {
      fused = testing::NaivelyFused(job.profile, rule->first_bytes, rule->cap_bytes);
      ++in_buckets;
    }
    in_cycles += graph.joint.cycles.has_value() ? 1 : 0;
    both += resolved.overlap_slowdown > 1 ? 1 : 0;
    const absl::StatusOr<Profile> plain_profile = Profile::Create(fused);
    ASSERT_TRUE(plain_profile.ok()) << plain_profile.status();
    const auto expected = NaiveEnds(*plain_profile, *scenario, graph, options, kSteps);
    const absl::StatusOr<RunResult> result = Simulate(graph, options, NeverStop);
    ASSERT_TRUE(result.ok()) << result.status();
    for (size_t worker = 0; worker < expected.size(); ++worker) {
      for (size_t step = 0; step < static_cast<size_t>(kSteps); ++step) {
        ASSERT_EQ(result->step_ends[worker][step].ticks, expected[worker][step])
            << "worker " << worker << " step " << step;
      }
    }
    resolved.collective_slowdown = 1;
    const absl::StatusOr<RunResult> without =
        Simulate(JobOf(*program, nullptr, *scenario), options, NeverStop);
    ASSERT_TRUE(without.ok()) << without.status();
    slowed += result->step_ends[0].back() > without->step_ends[0].back() ? 1 : 0;
    ++compared;
  }
  EXPECT_GT(in_cycles, 150);
  EXPECT_GT(in_buckets, 150);
  EXPECT_GT(at_once, 300);
  EXPECT_GT(both, 300);
  EXPECT_GT(slowed, 300);
}

// Collectives with a pace that slows nothing take the plain engine, and end every step at the tick
// that the fast one says.
TEST(CollectivesComparisonTest, CollectivesThatNothingSlowsEndWhenTheFastEngineSays) {
  constexpr int32_t kSteps = 6;
  int compared = 0;
  for (uint64_t seed = 0; compared < 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomJob job = MakeJob(seed);
    const Profile profile = Profile::Create(job.profile).value();
    if (!profile.has_collectives()) continue;
    Scenario scenario = ResolveScenario(profile, job.scenario).value();
    const absl::StatusOr<JobProgram> program = BuildJobProgram(profile, scenario, NeverStop);
    if (!program.ok()) continue;
    RunOptions options = OptionsFor(scenario, kSteps, 0);
    const RunResult fast = Simulate(JobOf(*program, nullptr, scenario), options, NeverStop).value();
    options.fastest_path = EnginePath::kPlain;
    JobGraph graph = JobOf(*program, nullptr, scenario);
    const LinkLevel whole = LinkLevel::OfUnits(LinkLevel::kUnit);
    graph.joint.paces.assign(graph.joint.ops.size(),
                             {.computation = whole, .beside_computation = whole, .alone = whole});
    const RunResult plain = Simulate(graph, options, NeverStop).value();
    EXPECT_EQ(plain.path, EnginePath::kPlain);
    for (size_t worker = 0; worker < fast.step_ends.size(); ++worker)
      ASSERT_EQ(plain.step_ends[worker], fast.step_ends[worker]) << "worker " << worker;
    compared += fast.path == EnginePath::kPlain ? 0 : 1;
  }
}

// One worker's share of a step on paper. Forward 10 ms, backward 20 ms, a gradient of 10 MB that
// all wait for; then 12 ms beside it, and an optimizer of 5 ms after both. Two workers, so 10 MB
// cross each link. With 1000 threads computation has half its speed, and the bytes go at 0.5 GB/s
// beside it, 1 GB/s alone. From 30 ms on: 24 ms of computation beside the collective, which gets 24
// ms x 0.5 GB/s = 12 MB done meanwhile, so it ends first, at 30 + 20 = 50 ms. By then 10 of the 12
// ms are done; 2 more at full speed, and 5 of the optimizer: 57 ms. With 2 ms beside it instead of
// 12: those take 4 ms, in which 2 MB go; 8 more alone take 8 ms, until 42; 47 ms.
TEST(CollectivesTest, ContentionByHand) {
  const auto step_ends = [](int64_t beside_ms) {
    ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 7e9}};
    draft.operations = {
        {.name = "forward", .resource = Resource::kWorker},
        {.name = "backward", .resource = Resource::kWorker, .waiting_for = {0}},
        {.name = "gradient",
         .resource = Resource::kCollective,
         .size_bytes = 10'000'000,
         .waiting_for = {1},
         .collective = Collective::kAllReduce},
        {.name = "beside", .resource = Resource::kWorker, .waiting_for = {1}},
        {.name = "optimizer", .resource = Resource::kWorker, .waiting_for = {2, 3}}};
    draft.steps = {{.start_ns = {0, 0, 0, 0, 0},
                    .end_ns = {10'000'000, 20'000'000, 0, beside_ms * 1'000'000, 5'000'000}}};
    const Profile profile = Profile::Create(std::move(draft)).value();
    const AllReduceDraft how{
        .latency_seconds = 0,
        .fusion = GradientGroups{{{.operations = {"gradient"}, .threads = 1000}}},
        .contention =
            Contention{.alpha2 = 5e-4, .overlapped = {.gamma1 = 5e8}, .alone = {.gamma1 = 1e9}}};
    const Scenario scenario =
        ResolveScenario(profile, {.workers = 2, .communication = how}).value();
    const JobProgram program = BuildJobProgram(profile, scenario, NeverStop).value();
    const RunResult result =
        Simulate(JobOf(program, nullptr, scenario), OptionsFor(scenario, 2, 0), NeverStop).value();
    return std::pair(result.step_ends[0], result.joint_times[0]);
  };
  const auto at = [](int64_t milliseconds) {
    return Instant{} + Microseconds(1000 * milliseconds);
  };
  const auto [hidden, hidden_times] = step_ends(12);
  EXPECT_EQ(hidden[0], at(57));
  EXPECT_EQ(hidden[1], at(2 * 57));
  EXPECT_EQ(hidden_times.begin, Microseconds(2 * 30'000));
  EXPECT_EQ(hidden_times.end, Microseconds(2 * 50'000));
  const auto [exposed, exposed_times] = step_ends(2);
  EXPECT_EQ(exposed[0], at(47));
  EXPECT_EQ(exposed[1], at(2 * 47));
  EXPECT_EQ(exposed_times.end, Microseconds(2 * 42'000));
}

// Each gradient has a lane of its own on every worker, and lanes take memory.
TEST(CollectivesComparisonTest, CyclesOfManyGradientsOnManyWorkersAreRefusedByTheLimitsName) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations.push_back({.name = "backward", .resource = Resource::kWorker});
  for (int i = 0; i < 6000; ++i) {
    draft.operations.push_back({.name = "g" + std::to_string(i),
                                .resource = Resource::kCollective,
                                .size_bytes = 10,
                                .waiting_for = {0},
                                .collective = Collective::kAllReduce});
  }
  RecordedStep& step = draft.steps.emplace_back();
  step.start_ns.assign(draft.operations.size(), 0);
  step.end_ns.assign(draft.operations.size(), 10);
  const Profile profile = Profile::Create(std::move(draft)).value();
  const auto run = [&](int32_t workers) {
    const Scenario scenario =
        ResolveScenario(profile, {.workers = workers,
                                  .communication = AllReduceDraft{.fusion = HorovodDraft{}}})
            .value();
    const JobProgram program = BuildJobProgram(profile, scenario, NeverStop).value();
    return Simulate(JobOf(program, nullptr, scenario), OptionsFor(scenario, 2, 0), NeverStop)
        .status();
  };
  EXPECT_TRUE(run(2).ok());
  const absl::Status refused = run(4096);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(refused).reason, "SIMULATION_TOO_LARGE");
}

// Everything that a run says but which engine made it.
void ExpectSame(const RunResult& plain, const RunResult& fast) {
  EXPECT_EQ(plain.steps_per_second, fast.steps_per_second);
  EXPECT_EQ(plain.measured, fast.measured);
  EXPECT_EQ(plain.counted_from, fast.counted_from);
  EXPECT_EQ(plain.counted, fast.counted);
  EXPECT_EQ(plain.step_times.MeanSeconds(), fast.step_times.MeanSeconds());
  EXPECT_EQ(plain.step_times.PercentileSeconds(0.95), fast.step_times.PercentileSeconds(0.95));
  EXPECT_EQ(plain.utilization, fast.utilization);
  EXPECT_EQ(plain.exposed_communication_fraction, fast.exposed_communication_fraction);
  EXPECT_EQ(plain.waiting_fraction, fast.waiting_fraction);
  EXPECT_EQ(plain.first_half_steps_per_second, fast.first_half_steps_per_second);
  EXPECT_EQ(plain.second_half_steps_per_second, fast.second_half_steps_per_second);
  EXPECT_EQ(plain.completions, fast.completions);
  EXPECT_EQ(plain.joint_times, fast.joint_times);
  EXPECT_EQ(plain.simulated_operations, fast.simulated_operations);
  EXPECT_EQ(plain.step_ends, fast.step_ends);
}

// With rates that are a link's, and computation that is not slowed down.
TEST(CollectivesComparisonTest, ContentionThatTakesNothingAwayIsNone) {
  int compared = 0;
  for (uint64_t seed = 0; compared < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomJob job = MakeJob(seed);
    auto& how = std::get<AllReduceDraft>(job.scenario.communication);
    for (WorkerGroup& group : job.scenario.worker_groups) group.bandwidth_bytes_per_second.reset();
    const absl::StatusOr<Profile> profile = Profile::Create(job.profile);
    ASSERT_TRUE(profile.ok()) << profile.status();
    if (!profile->has_collectives()) continue;
    const absl::StatusOr<Scenario> without = ResolveScenario(*profile, job.scenario);
    ASSERT_TRUE(without.ok()) << without.status();
    const TransferRate rate{.gamma1 = without->bandwidth_bytes_per_second};
    how.contention = Contention{.overlapped = rate, .alone = rate};
    how.threads = 64;
    const absl::StatusOr<Scenario> with = ResolveScenario(*profile, job.scenario);
    ASSERT_TRUE(with.ok()) << with.status();
    const absl::StatusOr<JobProgram> program = BuildJobProgram(*profile, *with, NeverStop);
    if (!program.ok()) continue;
    RunOptions options = OptionsFor(*with, 6, 2);
    const RunResult contended =
        Simulate(JobOf(*program, nullptr, *with), options, NeverStop).value();
    options.fastest_path = EnginePath::kPlain;
    ExpectSame(Simulate(JobOf(*program, nullptr, *without), options, NeverStop).value(), contended);
    ++compared;
  }
}

// A worker's steps, each of its own: the recorded one that it repeats, with every computation times
// the factor that the engine draws, in nanoseconds.
struct WorldOfSteps {
  std::vector<std::vector<int32_t>> index;  // of the profile's steps, by worker and step
  ProfileDraft profile;
};

WorldOfSteps NaiveWorld(const ProfileDraft& profile, const JobGraph& graph,
                        const RunOptions& options, int32_t steps) {
  WorldOfSteps world{.index = {}, .profile = profile};
  world.profile.steps.clear();
  for (int32_t worker = 0; worker < graph.workers(); ++worker) {
    StepSampler sampler(graph, options, worker);
    std::vector<int32_t>& of_worker = world.index.emplace_back();
    for (int32_t step = 0; step < steps; ++step) {
      of_worker.push_back(static_cast<int32_t>(world.profile.steps.size()));
      RecordedStep varied = profile.steps[static_cast<size_t>(sampler.Next(step))];
      const double factor = static_cast<double>(sampler.scale()) / 2520;
      for (size_t op = 0; op < varied.end_ns.size(); ++op) {
        const auto recorded = static_cast<double>(varied.end_ns[op] - varied.start_ns[op]);
        varied.end_ns[op] = varied.start_ns[op] + std::llround(recorded * factor);
      }
      world.profile.steps.push_back(std::move(varied));
    }
  }
  return world;
}

TEST(CollectivesComparisonTest, WorldsOfScaledStepsEndAsAnObviousSimulationOfThoseStepsSays) {
  constexpr int32_t kSteps = 5;
  int compared = 0;
  for (uint64_t seed = 0; compared < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomJob job = MakeJob(seed);
    job.scenario.worker_groups.clear();
    const absl::StatusOr<Profile> profile = Profile::Create(job.profile);
    ASSERT_TRUE(profile.ok()) << profile.status();
    if (!profile->has_collectives()) continue;
    std::get<AllReduceDraft>(job.scenario.communication).fusion = Unfused{};
    const absl::StatusOr<Scenario> scenario = ResolveScenario(*profile, job.scenario);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const absl::StatusOr<JobProgram> program = BuildJobProgram(*profile, *scenario, NeverStop);
    if (!program.ok()) continue;
    const JobGraph graph = JobOf(*program, nullptr, *scenario);
    RunOptions options = OptionsFor(*scenario, kSteps, 0);
    Random random({seed, 79});
    options.scaling = RandomScaling(graph.step_count(), random);
    const WorldOfSteps world = NaiveWorld(job.profile, graph, options, 3 * kSteps);
    const absl::StatusOr<Profile> worldly = Profile::Create(world.profile);
    ASSERT_TRUE(worldly.ok()) << worldly.status();
    const auto expected = testing::NaiveStepEnds(
        {.profile = *worldly,
         .scenario = *scenario,
         .recorded =
             [&](int32_t worker, int32_t step) {
               return world.index[static_cast<size_t>(worker)][static_cast<size_t>(step)];
             }},
        kSteps);
    const RunResult result = Simulate(graph, options, NeverStop).value();
    for (size_t worker = 0; worker < expected.size(); ++worker) {
      for (size_t step = 0; step < size_t{kSteps}; ++step) {
        const int64_t off = result.step_ends[worker][step].ticks - expected[worker][step];
        // Its computations are rounded to nanoseconds, some 20 one after the other in a step.
        ASSERT_LE(std::abs(off), 25 * kSteps * kTicksPerNanosecond)
            << "worker " << worker << " step " << step;
      }
    }
    ++compared;
  }
}

TEST(CollectivesComparisonTest, TheFastEngineSaysWhatThePlainOneSaysToTheTick) {
  int fast_runs = 0;
  int scaled = 0;
  int shared_links = 0;
  int measured_at_once = 0;
  for (uint64_t seed = 0; seed < 3000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomJob job = MakeJob(seed);
    Random random({seed, 78});
    if (random.Below(2) == 0) {
      auto& how = std::get<AllReduceDraft>(job.scenario.communication);
      how.algorithm = CollectiveAlgorithm::kGloo;
      how.concurrent_collectives = static_cast<int32_t>(1 + random.Below(3));
      if (random.Below(4) == 0) {
        how.algorithm = CollectiveAlgorithm::kMeasured;
        how.measured = {{.kind = Collective::kAllReduce,
                         .workers = 2,
                         .size_bytes = 1000,
                         .seconds = 1e-9 * static_cast<double>(1 + random.Below(5000))}};
      }
    }
    const absl::StatusOr<Profile> profile = Profile::Create(job.profile);
    ASSERT_TRUE(profile.ok()) << profile.status();
    if (!profile->has_collectives()) continue;
    const absl::StatusOr<Scenario> scenario = ResolveScenario(*profile, job.scenario);
    ASSERT_TRUE(scenario.ok()) << scenario.status();
    const absl::StatusOr<JobProgram> program = BuildJobProgram(*profile, *scenario, NeverStop);
    if (!program.ok()) continue;
    const JobGraph graph = JobOf(*program, nullptr, *scenario);
    const auto warmup = static_cast<int32_t>(random.Below(4));
    RunOptions options =
        OptionsFor(*scenario, warmup + 2 + static_cast<int32_t>(random.Below(9)), warmup);
    if (random.Below(2) == 0) options.scaling = RandomScaling(graph.step_count(), random);
    const absl::StatusOr<RunResult> fast = Simulate(graph, options, NeverStop);
    ASSERT_TRUE(fast.ok()) << fast.status();
    if (fast->path == EnginePath::kPlain) continue;
    ++fast_runs;
    scaled += options.scaling != nullptr ? 1 : 0;
    if (scenario->all_reduce().concurrent_collectives > 1)
      ++(graph.joint.messages.empty() ? measured_at_once : shared_links);
    options.fastest_path = EnginePath::kPlain;
    const absl::StatusOr<RunResult> plain = Simulate(graph, options, NeverStop);
    ASSERT_TRUE(plain.ok()) << plain.status();
    ExpectSame(*plain, *fast);
  }
  EXPECT_GT(fast_runs, 1000);
  EXPECT_GT(scaled, 400);
  EXPECT_GT(shared_links, 100);
  EXPECT_GT(measured_at_once, 50);
  RecordProperty("fast_runs", fast_runs);
}

// A random credit and random ranks in place of the order of the graph.
void Prioritize(Random& random, JobGraph& graph) {
  JointPriorities& priorities = graph.joint.priorities.emplace();
  priorities.credit_bytes = static_cast<int64_t>(1 + random.Below(5000));
  for (size_t i = 0; i < graph.joint.ops.size(); ++i) {
    priorities.ranks.push_back(static_cast<int32_t>(random.Below(4)));
    priorities.bytes.push_back(static_cast<int64_t>(1 + random.Below(3000)));
  }
  graph.joint.prepared = nullptr;
}

struct RandomRun {
  JobGraph graph;
  RunOptions options;
};

// A run of a random length of the job, at times by priority; none if it has no collectives, or they
// are refused.
std::optional<RandomRun> RunOf(const RandomJob& job, Random& random, bool several_at_once) {
  const absl::StatusOr<Profile> profile = Profile::Create(job.profile);
  EXPECT_TRUE(profile.ok()) << profile.status();
  if (!profile.ok() || !profile->has_collectives()) return std::nullopt;
  absl::StatusOr<Scenario> scenario = ResolveScenario(*profile, job.scenario);
  if (!scenario.ok()) return std::nullopt;
  auto& how = std::get<AllReduce>(scenario->communication);
  if (several_at_once && !how.contention.has_value() &&
      !std::holds_alternative<Horovod>(how.fusion))
    how.concurrent_collectives = static_cast<int32_t>(1 + random.Below(3));
  const absl::StatusOr<JobProgram> program = BuildJobProgram(*profile, *scenario, NeverStop);
  if (!program.ok()) return std::nullopt;
  RandomRun run{.graph = JobOf(*program, nullptr, *scenario), .options = {}};
  if (!run.graph.joint.cycles.has_value() && random.Below(3) == 0) Prioritize(random, run.graph);
  const auto warmup = static_cast<int32_t>(random.Below(4));
  run.options = OptionsFor(*scenario, warmup + 2 + static_cast<int32_t>(random.Below(9)), warmup);
  return run;
}

// Collectives that slow computation and each other, in their order, in cycles and by priority: all
// that a run says, of workers whose steps differ.
TEST(CollectivesComparisonTest, TheFastEngineSaysWhatThePlainOneSaysOfCollectivesThatContend) {
  struct {
    int in_order = 0, in_cycles = 0, by_priority = 0, paced = 0, scaled = 0, late = 0;
  } fast_runs;
  for (uint64_t seed = 0; seed < 6000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomJob job = MakeJob(seed);
    Random random({seed, 82});
    if (random.Below(2) == 0) {
      for (Operation& operation : job.profile.operations) operation.stream = 0;
    }
    if (random.Below(5) > 0) {
      Contend(random, job);
    } else if (random.Below(2) == 0) {
      std::get<AllReduceDraft>(job.scenario.communication).collective_slowdown =
          1 + 3 * random.Unit();
    }
    std::optional<RandomRun> run = RunOf(job, random, /*several_at_once=*/true);
    if (!run.has_value()) continue;
    const JobGraph& graph = run->graph;
    RunOptions& options = run->options;
    options.seed = seed;
    if (random.Below(3) > 0) options.scaling = RandomScaling(graph.step_count(), random);
    const absl::StatusOr<RunResult> fast = Simulate(graph, options, NeverStop);
    options.fastest_path = EnginePath::kPlain;
    const absl::StatusOr<RunResult> plain = Simulate(graph, options, NeverStop);
    ASSERT_EQ(fast.status(), plain.status());
    if (!fast.ok() || fast->path == EnginePath::kPlain) continue;
    ExpectSame(*plain, *fast);
    const bool in_cycles = graph.joint.cycles.has_value();
    const bool by_priority = graph.joint.priorities.has_value();
    ++(in_cycles ? fast_runs.in_cycles : by_priority ? fast_runs.by_priority : fast_runs.in_order);
    fast_runs.paced += graph.joint.has_paces() ? 1 : 0;
    fast_runs.scaled += options.scaling != nullptr ? 1 : 0;
    fast_runs.late +=
        fast->exposed_communication_fraction > 0 && fast->waiting_fraction > 0 ? 1 : 0;
  }
  EXPECT_GT(fast_runs.in_order, 400);
  EXPECT_GT(fast_runs.in_cycles, 100);
  EXPECT_GT(fast_runs.by_priority, 150);
  EXPECT_GT(fast_runs.paced, 800);
  EXPECT_GT(fast_runs.scaled, 500);
  EXPECT_GT(fast_runs.late, 500);
}

// Workers that are alike, from when they begin a step at once: those of one recorded step, with
// contention, cycles or priorities.
TEST(CollectivesComparisonTest, WorkersThatAreAlikeAreToldAsEachByItselfToTheTick) {
  int compared = 0;
  int in_step_at_last = 0;
  int started_apart = 0;
  int in_cycles = 0;
  int by_priority = 0;
  for (uint64_t seed = 0; compared < 600 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomJob job = MakeJob(seed);
    Random random({seed, 81});
    job.profile.steps.resize(1);
    job.scenario.worker_groups.clear();
    job.scenario.workers = static_cast<int32_t>(2 + random.Below(6));
    job.scenario.start_offsets_ns.clear();
    if (random.Below(3) > 0) {
      for (int32_t worker = 0; worker < *job.scenario.workers; ++worker)
        job.scenario.start_offsets_ns.push_back(static_cast<int64_t>(random.Below(3'000'000)));
      ++started_apart;
    }
    if (random.Below(4) > 0) Contend(random, job);
    std::optional<RandomRun> run = RunOf(job, random, /*several_at_once=*/false);
    if (!run.has_value()) continue;
    const JobGraph& graph = run->graph;
    RunOptions& options = run->options;
    if (random.Below(8) == 0) options.until = Instant{} + FromSeconds(0.01 * random.Unit());
    const absl::StatusOr<RunResult> together = Simulate(graph, options, NeverStop);
    options.fastest_path = EnginePath::kPlain;
    const absl::StatusOr<RunResult> apart = Simulate(graph, options, NeverStop);
    ASSERT_EQ(together.status(), apart.status());
    if (!apart.ok() || together->path != EnginePath::kPlain) continue;
    ExpectSame(*apart, *together);
    const auto last = [&](size_t worker) {
      const std::vector<Instant>& ends = together->step_ends[worker];
      return ends.empty() ? Instant{} : ends.back();
    };
    in_step_at_last += last(0) == last(1) ? 1 : 0;
    in_cycles += graph.joint.cycles.has_value() ? 1 : 0;
    by_priority += graph.joint.priorities.has_value() ? 1 : 0;
    ++compared;
  }
  EXPECT_GT(in_step_at_last, 400);
  EXPECT_GT(started_apart, 300);
  EXPECT_GT(in_cycles, 80);
  EXPECT_GT(by_priority, 20);
}

}  // namespace
}  // namespace stepcast::collectives_test
