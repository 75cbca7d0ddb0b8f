#include "core/communication/full_sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/communication/job.h"
#include "core/engine/step_sampler.h"
#include "core/model/made_steps.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/naive_collectives.h"

namespace stepcast::full_sharding_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::JobBuilder;
using testing::KeptTrace;
using ::testing::Pair;

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

// Three layers of 4 MB, 4 ms forward and 8 ms backward, and 1 ms of optimizer.
Profile ThreeLayers() {
  std::vector<TrainingLayer> layers;
  for (const std::string name : {"1", "2", "3"}) {
    layers.push_back({.name = name,
                      .parameters = {{.name = "w" + name, .size_bytes = 4'000'000}},
                      .forward_ns = 4'000'000,
                      .backward_ns = 8'000'000});
  }
  return Profile::Create(DraftOf(BuildAllReduceGraph(layers, 1'000'000))).value();
}

Scenario FullyShared(const Profile& profile, int32_t workers, AllReduceDraft job = {}) {
  job.sharding = Sharding::kFull;
  job.latency_seconds = job.latency_seconds.value_or(0);
  return ResolveScenario(profile, {.workers = workers, .communication = job}).value();
}

// Milliseconds of the first worker's first step, by what the operation is.
std::map<std::string, std::pair<double, double>> FirstStep(const Profile& profile,
                                                           const Scenario& scenario) {
  const JobProgram job = BuildJobProgram(profile, scenario, NeverStop).value();
  KeptTrace trace;
  RunOptions options = testing::OptionsFor(scenario, 1);
  options.trace = &trace;
  EXPECT_TRUE(Simulate(JobOf(job, nullptr, scenario), options, NeverStop).ok());
  std::map<std::string, std::pair<double, double>> times;
  std::map<OpIndex, std::string> names;
  std::map<std::string, int> gathered;
  for (const PlannedCollective& collective : job.collectives) {
    const std::string& parameter =
        profile.operations()[static_cast<size_t>(collective.members.front())].parameter;
    if (collective.kind == Collective::kReduceScatter) {
      names[collective.op] = "scatter " + parameter;
    } else {
      names[collective.op] = (gathered[parameter]++ == 0 ? "gather " : "gather again ") + parameter;
    }
  }
  for (const ChunkRecord& chunk : trace.records) {
    if (chunk.worker != 0 || chunk.step != 0) continue;
    const auto name = names.find(chunk.op);
    const auto& operation =
        profile.operations()[static_cast<size_t>(job.program->source(chunk.op))];
    times[name != names.end() ? name->second : operation.name] = {
        static_cast<double>(ToNanoseconds(chunk.start)) / 1e6,
        static_cast<double>(ToNanoseconds(chunk.end)) / 1e6};
  }
  return times;
}

// A gather and a scatter take 3 ms each. Gathers begin when the run before the last has ended; the
// second gather of layer 2 goes before the scatter of layer 3, whose backward it overlaps.
TEST(FullShardingTest, EveryInstantOfThreeLayersIsAsByHand) {
  const Profile profile = ThreeLayers();
  const auto times = FirstStep(profile, FullyShared(profile, 4));
  const std::map<std::string, std::pair<double, double>> expected = {
      {"gather w1", {0, 3}},      {"gather w2", {3, 6}},         {"forward/1", {3, 7}},
      {"gather w3", {7, 10}},     {"forward/2", {7, 11}},        {"gather again w3", {11, 14}},
      {"forward/3", {11, 15}},    {"gather again w2", {15, 18}}, {"backward/3", {15, 23}},
      {"scatter w3", {23, 26}},   {"backward/2", {23, 31}},      {"gather again w1", {26, 29}},
      {"scatter w2", {31, 34}},   {"backward/1", {31, 39}},      {"scatter w1", {39, 42}},
      {"optimizer", {42, 42.25}},  // a quarter of it
  };
  EXPECT_EQ(times, expected);
}

TEST(FullShardingTest, OnASlowLinkComputationWaitsForEveryGather) {
  const Profile profile = ThreeLayers();
  ScenarioDraft draft{.workers = 4, .bandwidth_bytes_per_second = 1e8};
  draft.communication = AllReduceDraft{.latency_seconds = 0, .sharding = Sharding::kFull};
  const auto times = FirstStep(profile, ResolveScenario(profile, draft).value());
  // 30 ms each, one after the other but for what waits for backward/3, /2 and /1.
  const std::map<std::string, std::pair<double, double>> expected = {
      {"gather w1", {0, 30}},         {"forward/1", {30, 34}},    {"gather w2", {30, 60}},
      {"forward/2", {60, 64}},        {"gather w3", {60, 90}},    {"forward/3", {90, 94}},
      {"gather again w3", {90, 120}}, {"backward/3", {120, 128}}, {"gather again w2", {120, 150}},
      {"scatter w3", {150, 180}},     {"backward/2", {150, 158}}, {"gather again w1", {180, 210}},
      {"scatter w2", {210, 240}},     {"backward/1", {210, 218}}, {"scatter w1", {240, 270}},
      {"optimizer", {270, 270.25}},
  };
  EXPECT_EQ(times, expected);
}

// (kind, bytes) of every collective, in order.
std::vector<std::pair<Collective, int64_t>> Carried(const Profile& profile,
                                                    const AllReduceDraft& job) {
  const JobProgram program =
      BuildJobProgram(profile, FullyShared(profile, 4, job), NeverStop).value();
  std::vector<std::pair<Collective, int64_t>> carried;
  for (const PlannedCollective& collective : program.collectives)
    carried.emplace_back(collective.kind, collective.bytes);
  return carried;
}

TEST(FullShardingTest, UnitsAreTheBucketsOfGradients) {
  const Collective gather = Collective::kAllGather;
  const Collective scatter = Collective::kReduceScatter;
  const AllReduceDraft two{.fusion = Buckets{.first_bytes = 8'000'000, .cap_bytes = 8'000'000}};
  EXPECT_THAT(
      Carried(ThreeLayers(), two),
      ElementsAre(Pair(gather, 4'000'000), Pair(gather, 8'000'000), Pair(gather, 8'000'000),
                  Pair(gather, 4'000'000), Pair(scatter, 8'000'000), Pair(scatter, 4'000'000)));
  const AllReduceDraft one{.fusion = Buckets{.first_bytes = 1 << 30, .cap_bytes = 1 << 30}};
  EXPECT_THAT(
      Carried(ThreeLayers(), one),
      ElementsAre(Pair(gather, 12'000'000), Pair(gather, 12'000'000), Pair(scatter, 12'000'000)));
}

// The bytes that each worker sends over its link, as shares of the buffers.
TEST(FullShardingTest, ThreeTimesTheParametersAreCarried) {
  for (const AllReduceDraft& job :
       {AllReduceDraft{}, AllReduceDraft{.fusion = Buckets{.first_bytes = 1, .cap_bytes = 9}},
        AllReduceDraft{.partition_bytes = 1'000'001}}) {
    int64_t carried = 0;
    for (const auto& [kind, bytes] : Carried(ThreeLayers(), job)) {
      ASSERT_NE(kind, Collective::kAllReduce);
      carried += bytes;
    }
    EXPECT_EQ(carried, 3 * 12'000'000);
  }
}

// Layers with random times; computation takes nothing where `computes` is false.
std::vector<TrainingLayer> RandomLayers(Random& random, bool computes) {
  std::vector<TrainingLayer> layers;
  const auto count = 1 + random.Below(9);
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    TrainingLayer& layer = layers.emplace_back(TrainingLayer{.name = name});
    layer.parameters = {
        {.name = "w" + name, .size_bytes = static_cast<int64_t>(1 + random.Below(3'000'000))}};
    if (!computes) continue;
    layer.forward_ns = static_cast<int64_t>(1 + random.Below(2'000'000));
    layer.backward_ns = static_cast<int64_t>(1 + random.Below(4'000'000));
  }
  return layers;
}

double StepSeconds(const Profile& profile, const Scenario& scenario) {
  const JobProgram job = BuildJobProgram(profile, scenario, NeverStop).value();
  RunOptions options = testing::OptionsFor(scenario, 5);
  const RunResult result = Simulate(JobOf(job, nullptr, scenario), options, NeverStop).value();
  return scenario.workers / result.steps_per_second;
}

TEST(FullShardingTest, WhereNothingOverlapsARingTakesHalfMoreThanOneOfAllReduces) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed, 5});
    ProfileDraft draft = DraftOf(BuildAllReduceGraph(RandomLayers(random, false), 0));
    draft.steps[0].end_ns[0] = 1;
    const Profile profile = Profile::Create(std::move(draft)).value();
    const AllReduceDraft job{
        .latency_seconds = 1e-6 * static_cast<double>(random.Below(100)),
        .fusion = Buckets{.first_bytes = static_cast<int64_t>(1 + random.Below(2'000'000)),
                          .cap_bytes = static_cast<int64_t>(1 + random.Below(6'000'000))}};
    const auto workers = static_cast<int32_t>(2 + random.Below(15));
    const double none = StepSeconds(
        profile, ResolveScenario(profile, {.workers = workers, .communication = job}).value());
    const double full = StepSeconds(profile, FullyShared(profile, workers, job));
    EXPECT_GE(full, none);
    EXPECT_NEAR(full / none, 1.5, 1e-4);
  }
}

// The same job written out: units of so many layers, from the last layer to the first, and each
// worker's share of the update.
ProfileDraft WrittenOut(const std::vector<TrainingLayer>& layers, std::vector<int32_t> units,
                        int32_t workers) {
  std::reverse(units.begin(), units.end());
  struct Run {
    std::vector<size_t> layers;
    int64_t bytes = 0;
  };
  std::vector<Run> runs;
  size_t next = 0;
  for (const int32_t count : units) {
    Run& run = runs.emplace_back();
    for (int32_t i = 0; i < count; ++i) {
      run.bytes += layers[next].parameters[0].size_bytes;
      run.layers.push_back(next++);
    }
  }
  const size_t forward = runs.size();
  for (size_t i = forward; i > 0; --i) {
    Run back = runs[i - 1];
    std::reverse(back.layers.begin(), back.layers.end());
    runs.push_back(back);
  }
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.steps.resize(1);
  const auto add = [&](Operation operation, int64_t ns) {
    operation.name = "o" + std::to_string(draft.operations.size());
    draft.operations.push_back(std::move(operation));
    draft.steps[0].start_ns.push_back(0);
    draft.steps[0].end_ns.push_back(ns);
    return static_cast<int32_t>(draft.operations.size()) - 1;
  };
  std::vector<int32_t> gathers;
  std::vector<int32_t> lasts;
  const auto gather = [&](size_t run) {
    if (run == runs.size()) return;
    std::vector<int32_t> freed;
    if (run >= 2) freed = {lasts[run - 2]};
    gathers.push_back(add({.resource = Resource::kCollective,
                           .size_bytes = runs[run].bytes,
                           .waiting_for = freed,
                           .collective = Collective::kAllGather},
                          0));
  };
  std::vector<int32_t> sums;
  std::vector<int32_t> before;
  gather(0);
  for (size_t run = 0; run < runs.size(); ++run) {
    gather(run + 1);
    before.push_back(gathers[run]);
    for (const size_t layer : runs[run].layers) {
      before = {add({.resource = Resource::kWorker, .waiting_for = before},
                    run < forward ? layers[layer].forward_ns : layers[layer].backward_ns)};
    }
    lasts.push_back(before.front());
    if (run < forward) continue;
    sums.push_back(add({.resource = Resource::kCollective,
                        .size_bytes = runs[run].bytes,
                        .waiting_for = before,
                        .collective = Collective::kReduceScatter},
                       0));
  }
  sums.push_back(before.front());
  std::sort(sums.begin(), sums.end());
  add({.resource = Resource::kWorker, .waiting_for = sums}, std::llround(12'345.0 / workers));
  return draft;
}

TEST(FullShardingTest, FourHundredRandomJobsEndTheirStepsAsTheSameJobWrittenOut) {
  constexpr int32_t kSteps = 4;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed, 6});
    const std::vector<TrainingLayer> layers = RandomLayers(random, true);
    const Profile profile = Profile::Create(DraftOf(BuildAllReduceGraph(layers, 12'345))).value();
    const AllReduceDraft job{
        .latency_seconds = 1e-6 * static_cast<double>(random.Below(50)),
        .reduction_seconds_per_byte = 1e-10 * static_cast<double>(random.Below(3)),
        .launch_seconds = 1e-6 * static_cast<double>(random.Below(9)),
        .fusion = Buckets{.first_bytes = static_cast<int64_t>(1 + random.Below(2'000'000)),
                          .cap_bytes = static_cast<int64_t>(1 + random.Below(6'000'000))}};
    const Scenario scenario = FullyShared(profile, static_cast<int32_t>(1 + random.Below(6)), job);
    std::vector<int64_t> bytes;
    for (size_t i = layers.size(); i > 0; --i)
      bytes.push_back(layers[i - 1].parameters[0].size_bytes);
    const Profile written_out =
        Profile::Create(WrittenOut(layers, GradientsByBucket(bytes, scenario.all_reduce().fusion),
                                   scenario.workers))
            .value();
    const auto expected = testing::NaiveStepEnds({.profile = written_out,
                                                  .scenario = scenario,
                                                  .recorded = [](int32_t, int32_t) { return 0; }},
                                                 kSteps);
    const JobProgram program = BuildJobProgram(profile, scenario, NeverStop).value();
    RunOptions options = testing::OptionsFor(scenario, kSteps);
    for (const EnginePath path : {EnginePath::kPlain, EnginePath::kMemoised}) {
      options.fastest_path = path;
      const RunResult result =
          Simulate(JobOf(program, nullptr, scenario), options, NeverStop).value();
      for (size_t worker = 0; worker < expected.size(); ++worker) {
        for (size_t step = 0; step < static_cast<size_t>(kSteps); ++step) {
          // A collective's seconds become ticks by another order of multiplications.
          ASSERT_NEAR(static_cast<double>(result.step_ends[worker][step].ticks),
                      static_cast<double>(expected[worker][step]), 3 * 30 * kSteps);
        }
      }
    }
  }
}

// Inside a step against servers the forward names what it downloads, wherever that is.
TEST(FullShardingTest, WhatADownloadIsForIsReadFromAProfileOfServers) {
  JobBuilder job;
  const int32_t a = job.Download(1000, {}, 0, "a");
  const int32_t b = job.Download(2000, {}, 0, "b");
  const int32_t first = job.Compute(10, {b});
  const int32_t second = job.Compute(10, {first, a});
  const int32_t back_b = job.Compute(10, {second});
  const int32_t send_b = job.Upload(2000, {back_b}, 0, "b");
  const int32_t back_a = job.Compute(10, {back_b});
  const int32_t send_a = job.Upload(1000, {back_a}, 0, "a");
  job.Update(5, {send_b}, 0, "b");
  job.Update(5, {send_a}, 0, "a");
  const Profile profile = job.Build();
  const JobProgram program = BuildJobProgram(profile, FullyShared(profile, 2), NeverStop).value();
  std::vector<std::pair<Collective, int64_t>> carried;
  for (const PlannedCollective& collective : program.collectives)
    carried.emplace_back(collective.kind, collective.bytes);
  // b comes first in the forward and in the backward.
  EXPECT_THAT(
      carried,
      ElementsAre(Pair(Collective::kAllGather, 2000), Pair(Collective::kAllGather, 1000),
                  Pair(Collective::kAllGather, 2000), Pair(Collective::kAllGather, 1000),
                  Pair(Collective::kReduceScatter, 2000), Pair(Collective::kReduceScatter, 1000)));
}

// Two tensors of one layer in two buckets: both are there before it computes, and the limit of two
// does not lock them out.
TEST(FullShardingTest, UnitsThatBeginWithOneComputationAreGatheredOneAfterTheOther) {
  std::vector<TrainingLayer> layers;
  for (const std::string name : {"1", "2"}) {
    layers.push_back({.name = name, .forward_ns = 1'000'000, .backward_ns = 1'000'000});
    for (const std::string part : {"a", "b", "c"})
      layers.back().parameters.push_back({.name = name + part, .size_bytes = 2'000'000});
  }
  const Profile profile = Profile::Create(DraftOf(BuildAllReduceGraph(layers, 0))).value();
  const auto times = FirstStep(profile, FullyShared(profile, 2));
  // A millisecond each; those of the second layer go on while the first one computes.
  EXPECT_EQ(times.at("gather 1c").second, 3);
  EXPECT_EQ(times.at("forward/1").first, 3);
  EXPECT_EQ(times.at("forward/2").first, 6);
  EXPECT_EQ(times.at("gather again 2c").first, 6) << "layer 1's forward has ended";
  EXPECT_EQ(times.at("backward/2").first, 9);
}

absl::Status StatusOf(ProfileDraft draft) {
  const Profile profile = Profile::Create(std::move(draft)).value();
  return CheckCollectives(profile, FullyShared(profile, 2));
}
void ExpectFault(const absl::Status& status, const std::string& says) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const ErrorDetails details = DetailsOf(status);
  EXPECT_EQ(details.reason, "SCENARIO_INVALID");
  ASSERT_EQ(details.faults.size(), 1U);
  EXPECT_EQ(details.faults[0].field, "all_reduce.sharding");
  EXPECT_THAT(details.faults[0].description, HasSubstr(says));
}

TEST(FullShardingTest, WhatTheProfileDoesNotSayIsNamed) {
  const auto draft_of = [](std::vector<Operation> operations) {
    ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
    draft.operations = std::move(operations);
    RecordedStep& step = draft.steps.emplace_back();
    step.start_ns.assign(draft.operations.size(), 0);
    step.end_ns.assign(draft.operations.size(), 10);
    return draft;
  };
  const auto all_reduce = [](std::vector<int32_t> waiting_for) {
    return Operation{.name = "gradient",
                     .resource = Resource::kCollective,
                     .size_bytes = 10,
                     .waiting_for = std::move(waiting_for),
                     .collective = Collective::kAllReduce};
  };
  const Operation compute{.name = "compute", .resource = Resource::kWorker};
  const auto after = [&](int32_t before) {
    return Operation{.name = "later" + std::to_string(before),
                     .resource = Resource::kWorker,
                     .waiting_for = {before}};
  };
  ExpectFault(StatusOf(draft_of({compute, all_reduce({0})})), "\"compute\" makes a gradient");
  ExpectFault(StatusOf(draft_of({compute, after(0), all_reduce({})})),
              "operations[2], \"gradient\", waits for no computation");
  Operation clipping = all_reduce({3});
  clipping.name = "norm";
  ExpectFault(StatusOf(draft_of({compute, after(0), all_reduce({1}), after(2), clipping})),
              "\"norm\", waits for the sum of another");
  Operation broadcast = all_reduce({});
  broadcast.collective = Collective::kBroadcast;
  ExpectFault(StatusOf(draft_of({compute, broadcast})), "no ALL_REDUCE");
  EXPECT_TRUE(StatusOf(draft_of({compute, after(0), all_reduce({1})})).ok());
}

}  // namespace
}  // namespace stepcast::full_sharding_test
