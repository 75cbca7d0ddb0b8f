#include "core/communication/all_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "tests/core/engine/job_builder.h"

namespace stepcast::collective_program_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;

// The fp32 gradients of VGG-16 in the order in which backward makes them, bias before weights.
std::vector<int64_t> Vgg16Gradients() {
  std::vector<int64_t> bytes;
  const auto layer = [&](int64_t outputs, int64_t weights_each) {
    bytes.push_back(4 * outputs);
    bytes.push_back(4 * outputs * weights_each);
  };
  layer(1000, 4096);
  layer(4096, 4096);
  layer(4096, 25'088);
  for (const auto& [inputs, outputs] : std::vector<std::pair<int64_t, int64_t>>{{512, 512},
                                                                                {512, 512},
                                                                                {512, 512},
                                                                                {512, 512},
                                                                                {512, 512},
                                                                                {256, 512},
                                                                                {256, 256},
                                                                                {256, 256},
                                                                                {128, 256},
                                                                                {128, 128},
                                                                                {64, 128},
                                                                                {64, 64},
                                                                                {3, 64}})
    layer(outputs, 9 * inputs);
  return bytes;
}

std::vector<int64_t> BucketSizes(const std::vector<int64_t>& gradients, const Fusion& fusion) {
  std::vector<int64_t> sizes;
  size_t next = 0;
  for (int32_t count : GradientsByBucket(gradients, fusion)) {
    sizes.push_back(0);
    for (; count > 0; --count) sizes.back() += gradients.at(next++);
  }
  EXPECT_EQ(next, gradients.size());
  return sizes;
}

// Sizes as PyTorch logged them.
TEST(GradientsByBucketTest, Vgg16HasTheBucketsThatPyTorchMakes) {
  EXPECT_THAT(BucketSizes(Vgg16Gradients(), Buckets{}),
              ElementsAre(16388000, 67125248, 411058176, 28317696, 28319744, 2221312));
  constexpr int64_t kHundred = 100 << 20;
  EXPECT_THAT(
      BucketSizes(Vgg16Gradients(), Buckets{.first_bytes = kHundred, .cap_bytes = kHundred}),
      ElementsAre(494571424, 58858752));
}

TEST(GradientsByBucketTest, ABucketIsClosedOnceItHasReachedItsLimit) {
  const std::vector<int64_t> gradients = {5, 5, 10, 1, 3, 20, 1};
  EXPECT_THAT(GradientsByBucket(gradients, Buckets{.first_bytes = 10, .cap_bytes = 11}),
              ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(GradientsByBucket(gradients, Buckets{.first_bytes = 1, .cap_bytes = 100}),
              ElementsAre(1, 6));
  EXPECT_THAT(GradientsByBucket(gradients, RecordedBuckets{.sizes_bytes = {20, 4, 21}}),
              ElementsAre(3, 2, 2));
  EXPECT_THAT(GradientsByBucket({}, Buckets{}), IsEmpty());
}

// forward; backward and gradient b of 10 bytes, backward and gradient a of 5; the optimizer.
ProfileDraft Training() {
  const auto gradient = [](std::string name, int64_t bytes, int32_t after) {
    return Operation{.name = std::move(name),
                     .resource = Resource::kCollective,
                     .size_bytes = bytes,
                     .waiting_for = {after},
                     .collective = Collective::kAllReduce};
  };
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "forward", .resource = Resource::kWorker},
                      {.name = "backward b", .resource = Resource::kWorker, .waiting_for = {0}},
                      gradient("b", 10, 1),
                      {.name = "backward a", .resource = Resource::kWorker, .waiting_for = {1}},
                      gradient("a", 5, 3),
                      {.name = "optimizer", .resource = Resource::kWorker, .waiting_for = {2, 4}}};
  draft.steps = {{.start_ns = {0, 0, 0, 0, 0, 0}, .end_ns = {10, 20, 30, 20, 30, 5}}};
  return draft;
}

absl::StatusOr<CollectiveProgram> Built(const Profile& profile, const AllReduceDraft& job) {
  const absl::StatusOr<Scenario> scenario =
      ResolveScenario(profile, {.workers = 2, .communication = job});
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return BuildCollectiveProgram(profile, *scenario, NeverStop);
}
CollectiveProgram BuiltOf(ProfileDraft draft, const AllReduceDraft& job = {}) {
  return Built(Profile::Create(std::move(draft)).value(), job).value();
}

// By operation of the program: those that wait for it.
std::vector<std::vector<OpIndex>> DependentsOf(const Program& program) {
  std::vector<std::vector<OpIndex>> all;
  for (OpIndex op = 0; op < program.size(); ++op)
    all.emplace_back(program.dependents(op).begin(), program.dependents(op).end());
  return all;
}

TEST(CollectiveProgramTest, WithoutBucketsCollectivesStandAsRecorded) {
  const CollectiveProgram built = BuiltOf(Training());
  ASSERT_EQ(built.program.size(), 6);
  EXPECT_THAT(built.collectives,
              ElementsAre(PlannedCollective{.op = 2, .bytes = 10, .members = {2}},
                          PlannedCollective{.op = 4, .bytes = 5, .members = {4}}));
  EXPECT_THAT(DependentsOf(built.program),
              ElementsAre(ElementsAre(1), ElementsAre(2, 3), ElementsAre(5), ElementsAre(4),
                          ElementsAre(5), IsEmpty()));
  // A collective's recorded time is not used.
  EXPECT_EQ(built.program.duration(0, 2), Span{});
  EXPECT_EQ(built.program.duration(0, 1), Nanoseconds(20));
}

TEST(CollectiveProgramTest, ABucketStandsWhereItsLastMemberDidAndWaitsForThemAll) {
  const CollectiveProgram built =
      BuiltOf(Training(), {.fusion = Buckets{.first_bytes = 15, .cap_bytes = 1}});
  EXPECT_THAT(built.collectives,
              ElementsAre(PlannedCollective{.op = 3, .bytes = 15, .members = {2, 4}}));
  EXPECT_THAT(DependentsOf(built.program), ElementsAre(ElementsAre(1), ElementsAre(2, 3),
                                                       ElementsAre(3), ElementsAre(4), IsEmpty()));
}

TEST(CollectiveProgramTest, RecordedBucketsCountUnlessTheScenarioHasOthers) {
  ProfileDraft recorded = Training();
  recorded.buckets = RecordedBuckets{.sizes_bytes = {15}};
  EXPECT_EQ(BuiltOf(recorded).collectives.size(), 1U);
  EXPECT_EQ(
      BuiltOf(recorded, {.fusion = Buckets{.first_bytes = 1, .cap_bytes = 1}}).collectives.size(),
      2U);
  recorded.buckets = RecordedBuckets{.rule = Buckets{.first_bytes = 1, .cap_bytes = 1}};
  EXPECT_EQ(BuiltOf(recorded).collectives.size(), 2U);
}

AllReduceDraft Threaded(std::vector<GradientGroup> groups) {
  return {.latency_seconds = 0,
          .fusion = GradientGroups{std::move(groups)},
          .contention = Contention{.alpha2 = 1e-4,
                                   .overlapped = {.gamma1 = 5e8},
                                   .alone = {.gamma1 = 2e9, .gamma2 = 1e9, .gamma3 = 0.01}},
          .threads = 64};
}

TEST(CollectiveProgramTest, AGroupHoldsWhatItNamesAndHasItsThreads) {
  const CollectiveProgram apart =
      BuiltOf(Training(), Threaded({{.operations = {"b"}, .threads = 5}, {.operations = {"a"}}}));
  EXPECT_THAT(apart.collectives,
              ElementsAre(PlannedCollective{.op = 2, .bytes = 10, .members = {2}, .threads = 5},
                          PlannedCollective{.op = 4, .bytes = 5, .members = {4}}));
  AllReduceDraft together = Threaded({{.operations = {"b", "a"}, .threads = 7}});
  EXPECT_THAT(
      BuiltOf(Training(), together).collectives,
      ElementsAre(PlannedCollective{.op = 3, .bytes = 15, .members = {2, 4}, .threads = 7}));
  // Pieces, and what sharding makes of it, too.
  for (const Sharding sharding : {Sharding::kNone, Sharding::kOptimizer, Sharding::kFull}) {
    together.sharding = sharding;
    together.partition_bytes = 8;
    const CollectiveProgram built = BuiltOf(Training(), together);
    EXPECT_EQ(built.collectives.size(), sharding == Sharding::kNone        ? 2U
                                        : sharding == Sharding::kOptimizer ? 4U
                                                                           : 6U);
    for (const PlannedCollective& collective : built.collectives)
      EXPECT_EQ(collective.threads, 7) << static_cast<int>(collective.kind);
  }
}

TEST(CollectiveProgramTest, ACollectiveGoesOnAtTheRatesOfItsThreads) {
  const Profile profile = Profile::Create(Training()).value();
  const AllReduceDraft asked =
      Threaded({{.operations = {"b"}, .threads = 1000}, {.operations = {"a"}}});
  const Scenario scenario =
      ResolveScenario(profile, {.workers = 2, .communication = asked}).value();
  CollectiveProgram built = BuildCollectiveProgram(profile, scenario, NeverStop).value();
  const JobGraph job = CollectiveJobOf(std::make_shared<const Program>(std::move(built.program)),
                                       built.collectives, {}, scenario);
  // 10 bytes at 0.5 GB/s beside computation, alone at 2 - exp(-0.01 x 1000^0.6) GB/s.
  const double alone = 10 / (2 - std::exp(-0.01 * std::pow(1000, 0.6)));  // ns
  ASSERT_EQ(job.joint.paces.size(), 2U);
  EXPECT_NEAR(static_cast<double>(job.joint.lengths[0].ticks), alone * 2520, 1);
  const auto speed = [](const LinkLevel& level) {
    return static_cast<double>(level.Whole()) / static_cast<double>(LinkLevel::kUnit);
  };
  EXPECT_NEAR(speed(job.joint.paces[0].computation), 0.9, 1e-9);
  EXPECT_NEAR(speed(job.joint.paces[0].beside_computation), alone / 20, 1e-4);
  EXPECT_EQ(speed(job.joint.paces[0].alone), 1);
  EXPECT_NEAR(speed(job.joint.paces[1].computation), 1 - 64e-4, 1e-9);
  EXPECT_TRUE(job.slows_computation());
  // A bound is at the faster rate, a step without overlap at the one that it has alone.
  const double both = (10 + 5 * (2 - std::exp(-0.01 * std::pow(1000, 0.6))) /
                                (2 - std::exp(-0.01 * std::pow(64, 0.6)))) /
                      10 * alone * 1e-9;
  EXPECT_NEAR(CollectiveSeconds(built.collectives, scenario), both, 1e-12);
  EXPECT_EQ(LoneCollectiveSeconds(built.collectives, scenario),
            CollectiveSeconds(built.collectives, scenario));
  AllReduceDraft swapped = asked;
  std::swap(swapped.contention->overlapped, swapped.contention->alone);
  const Scenario faster_beside =
      ResolveScenario(profile, {.workers = 2, .communication = swapped}).value();
  EXPECT_NEAR(CollectiveSeconds(built.collectives, faster_beside), both, 1e-12);
  EXPECT_NEAR(LoneCollectiveSeconds(built.collectives, faster_beside), 30e-9, 1e-12);
}

TEST(CollectiveProgramTest, WhatIsCutAddsUpAndTheOptimizerWaitsForEveryPiece) {
  const CollectiveProgram built = BuiltOf(Training(), {.partition_bytes = 4});
  std::vector<int64_t> bytes;
  for (const PlannedCollective& piece : built.collectives) bytes.push_back(piece.bytes);
  EXPECT_THAT(bytes, ElementsAre(4, 4, 2, 4, 1));
  EXPECT_EQ(built.program.dependency_count(built.program.size() - 1), 5);
}

TEST(CollectiveProgramTest, AShardedOptimizerScattersGradientsAndGathersParameters) {
  const CollectiveProgram built = BuiltOf(Training(), {.sharding = Sharding::kGradients});
  EXPECT_THAT(
      built.collectives,
      ElementsAre(
          PlannedCollective{
              .op = 2, .kind = Collective::kReduceScatter, .bytes = 10, .members = {2}},
          PlannedCollective{
              .op = 4, .kind = Collective::kReduceScatter, .bytes = 5, .members = {4}},
          PlannedCollective{.op = 6, .kind = Collective::kAllGather, .bytes = 10, .members = {2}},
          PlannedCollective{.op = 7, .kind = Collective::kAllGather, .bytes = 5, .members = {4}}));
  EXPECT_THAT(DependentsOf(built.program)[5], ElementsAre(6, 7)) << "the optimizer comes first";
}

// True if the operation waits for a sum, however indirectly.
bool FollowsASum(const std::vector<Operation>& operations, int32_t at) {
  const std::vector<int32_t>& needed = operations[static_cast<size_t>(at)].waiting_for;
  return std::any_of(needed.begin(), needed.end(), [&](int32_t before) {
    return operations[static_cast<size_t>(before)].resource == Resource::kCollective ||
           FollowsASum(operations, before);
  });
}

// Random steps whose operations say their passes, or none of them: what is shared has its part of
// the recorded time, to a nanosecond, and all else the whole.
TEST(CollectiveProgramTest, ShardedWorkersMakeAShareOfEachUpdate) {
  int shared = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed, 31});
    const bool has_passes = random.Below(2) == 0;
    ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
    draft.steps.resize(1 + random.Below(3));
    for (int32_t i = 0; i < 12; ++i) {
      Operation& operation = draft.operations.emplace_back();
      operation.name = std::to_string(i);
      const bool sums = i > 0 && random.Below(3) == 0;
      operation.resource = sums ? Resource::kCollective : Resource::kWorker;
      if (sums) operation.collective = Collective::kAllReduce;
      if (sums) operation.size_bytes = static_cast<int64_t>(1 + random.Below(1000));
      if (!sums && has_passes) operation.pass = static_cast<Pass>(random.Below(7));
      for (int32_t before = 0; before < i; ++before)
        if (random.Below(4) == 0) operation.waiting_for.push_back(before);
      for (RecordedStep& step : draft.steps) {
        step.start_ns.push_back(0);
        step.end_ns.push_back(sums ? 0 : static_cast<int64_t>(random.Below(100'000)));
      }
    }
    const bool says_one = std::any_of(
        draft.operations.begin(), draft.operations.end(),
        [](const Operation& operation) { return operation.pass != Pass::kUnspecified; });
    const Profile profile = Profile::Create(draft).value();
    const auto workers = static_cast<int32_t>(1 + random.Below(9));
    const AllReduceDraft job{
        .sharding = static_cast<Sharding>(random.Below(3)),
        .fidelity = random.Below(2) == 0 ? Fidelity::kCollapsed : Fidelity::kExpanded};
    const CollectiveProgram built =
        BuildCollectiveProgram(
            profile, ResolveScenario(profile, {.workers = workers, .communication = job}).value(),
            NeverStop)
            .value();
    for (OpIndex op = 0; op < built.program.size(); ++op) {
      if (!built.program.lanes().IsCompute(built.program.lane(op))) continue;
      const int32_t source = built.program.source(op);
      const Operation& operation = draft.operations[static_cast<size_t>(source)];
      const bool is_update =
          says_one ? operation.pass == Pass::kOptimizer : FollowsASum(draft.operations, source);
      const double share = is_update && *job.sharding != Sharding::kNone ? 1.0 / workers : 1.0;
      shared += share < 1 ? 1 : 0;
      for (size_t step = 0; step < draft.steps.size(); ++step)
        EXPECT_EQ(built.program.duration(static_cast<int32_t>(step), op),
                  Nanoseconds(std::llround(
                      share *
                      static_cast<double>(draft.steps[step].end_ns[static_cast<size_t>(source)]))));
    }
  }
  EXPECT_GT(shared, 100);
}

TEST(CollectiveProgramTest, AProfileOfServersBecomesOneOfCollectivesParameterByParameter) {
  JobBuilder job;
  const int32_t download = job.Download(1000, {}, 0, "w");
  const int32_t before = job.Compute(10);
  const int32_t computation = job.Compute(2000, {download, before});
  const int32_t upload = job.Upload(1000, {computation}, 0, "w");
  const int32_t update = job.Update(300, {upload}, 0, "w");
  job.Compute(7, {update});
  const CollectiveProgram built = Built(job.Build(), AllReduceDraft{}).value();
  EXPECT_THAT(built.collectives,
              ElementsAre(PlannedCollective{.op = 2, .bytes = 1000, .members = {upload}}));
  // Operations that waited for the update wait for the sum.
  EXPECT_THAT(DependentsOf(built.program),
              ElementsAre(ElementsAre(1), ElementsAre(2), ElementsAre(3), IsEmpty()));
}

TEST(CollectiveProgramTest, BucketsThatWouldWaitForThemselvesAreRefusedByName) {
  ProfileDraft crossed = Training();
  crossed.operations[3].waiting_for = {2};  // backward a needs the sum of b
  const Profile profile = Profile::Create(std::move(crossed)).value();
  EXPECT_TRUE(Built(profile, AllReduceDraft{}).ok());
  const absl::Status status =
      Built(profile, {.fusion = Buckets{.first_bytes = 15, .cap_bytes = 15}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailsOf(status).reason, "SCENARIO_INVALID");
  ASSERT_EQ(DetailsOf(status).faults.size(), 1U);
  EXPECT_EQ(DetailsOf(status).faults[0].field, "all_reduce");
  EXPECT_THAT(DetailsOf(status).faults[0].description, HasSubstr(R"("b" to "a")"));
}

TEST(CollectiveProgramTest, AProfileWhoseOrderCannotBeKeptIsRefused) {
  ProfileDraft crossed = Training();
  crossed.operations[1].waiting_for = {0, 4};  // b, which is first, would wait for a
  crossed.operations[3].waiting_for = {0};
  const absl::Status status =
      Built(Profile::Create(std::move(crossed)).value(), AllReduceDraft{}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(CollectiveProgramTest, BuildingStopsWhenTold) {
  const Profile profile = Profile::Create(Training()).value();
  const Scenario scenario = ResolveScenario(profile, {}).value();
  const auto stop = [] { return absl::CancelledError("enough"); };
  EXPECT_EQ(BuildCollectiveProgram(profile, scenario, stop).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(CollectiveProgramTest, OnlyWhatShapesAStepMakesAnotherProgram) {
  const Profile profile = Profile::Create(Training()).value();
  const auto same = [&](const AllReduceDraft& a, const AllReduceDraft& b) {
    return HaveSameCollectiveProgram(
        ResolveScenario(profile, {.workers = 2, .communication = a}).value(),
        ResolveScenario(profile, {.workers = 8, .communication = b}).value());
  };
  EXPECT_TRUE(same({}, {.algorithm = CollectiveAlgorithm::kTree, .latency_seconds = 1}));
  // Two workers have other shares of an update than eight.
  EXPECT_FALSE(same({.sharding = Sharding::kOptimizer}, {.sharding = Sharding::kOptimizer}));
  EXPECT_FALSE(same({}, {.fusion = Buckets{}}));
  EXPECT_FALSE(same({}, {.partition_bytes = 3}));
  EXPECT_FALSE(same({}, {.sharding = Sharding::kOptimizer}));
  const AllReduceDraft together = Threaded({{.operations = {"b", "a"}, .threads = 7}});
  EXPECT_FALSE(same({}, {.fusion = together.fusion, .contention = together.contention}));
  AllReduceDraft otherwise = together;
  otherwise.contention->alpha2 = 0;
  otherwise.threads = 8;
  EXPECT_TRUE(same(together, otherwise));
  EXPECT_FALSE(same({}, {.algorithm = CollectiveAlgorithm::kGloo, .concurrent_collectives = 2}));
}

}  // namespace
}  // namespace stepcast::collective_program_test
