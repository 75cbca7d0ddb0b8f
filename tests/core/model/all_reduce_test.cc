#include "core/model/all_reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/model/scenario.h"

namespace stepcast::model_all_reduce_test {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// A computation and a gradient of 1000 bytes.
ProfileDraft GradientDraft() {
  ProfileDraft draft{.batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e8}};
  draft.operations = {{.name = "backward", .resource = Resource::kWorker},
                      {.name = "gradient",
                       .resource = Resource::kCollective,
                       .size_bytes = 1000,
                       .waiting_for = {0},
                       .collective = Collective::kAllReduce}};
  draft.steps = {{.start_ns = {0, 10}, .end_ns = {10, 10}}};
  return draft;
}

Profile Gradient() { return Profile::Create(GradientDraft()).value(); }

std::vector<Fault> FaultsOf(const AllReduceDraft& job, int32_t workers = 4,
                            const Profile& profile = Gradient()) {
  return DetailsOf(ResolveScenario(profile, {.workers = workers, .communication = job}).status())
      .faults;
}

AllReduce Resolved(const AllReduceDraft& job, const Profile& profile = Gradient()) {
  const absl::StatusOr<Scenario> scenario =
      ResolveScenario(profile, {.workers = 4, .communication = job});
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return scenario.value().all_reduce();
}

TEST(AllReduceTest, WhatIsUnsetHasItsDefault) {
  const AllReduce expected{.latency_seconds = 25e-6, .intra_node_bandwidth_bytes_per_second = 1e8};
  EXPECT_EQ(Resolved({}), expected);
  const absl::StatusOr<Scenario> unasked = ResolveScenario(Gradient(), {.workers = 4});
  ASSERT_TRUE(unasked.ok()) << unasked.status();
  EXPECT_EQ(unasked->all_reduce(), expected);
  EXPECT_TRUE(unasked->is_synchronous());
  EXPECT_EQ(unasked->server_count(), 0);
}

TEST(AllReduceTest, WhatIsSetIsKept) {
  const AllReduceDraft draft{.algorithm = CollectiveAlgorithm::kGloo,
                             .latency_seconds = 1e-5,
                             .workers_per_node = 2,
                             .intra_node_bandwidth_bytes_per_second = 3e9,
                             .intra_node_latency_seconds = 2e-6,
                             .reduction_seconds_per_byte = 1e-10,
                             .launch_seconds = 3e-5,
                             .fusion = Buckets{.first_bytes = 7, .cap_bytes = 9},
                             .concurrent_collectives = 2,
                             .partition_bytes = 500,
                             .sharding = Sharding::kOptimizer,
                             .overlap_slowdown = 1.5};
  const AllReduce expected{.algorithm = CollectiveAlgorithm::kGloo,
                           .latency_seconds = 1e-5,
                           .workers_per_node = 2,
                           .intra_node_bandwidth_bytes_per_second = 3e9,
                           .intra_node_latency_seconds = 2e-6,
                           .reduction_seconds_per_byte = 1e-10,
                           .launch_seconds = 3e-5,
                           .fusion = Buckets{.first_bytes = 7, .cap_bytes = 9},
                           .concurrent_collectives = 2,
                           .partition_bytes = 500,
                           .sharding = Sharding::kOptimizer,
                           .overlap_slowdown = 1.5};
  EXPECT_EQ(Resolved(draft), expected);
}

TEST(AllReduceTest, CollectivesMayBeSlowedAlone) {
  const AllReduceDraft draft{.algorithm = CollectiveAlgorithm::kGloo, .collective_slowdown = 100};
  EXPECT_EQ(Resolved(draft).collective_slowdown, 100);
  EXPECT_EQ(Resolved({.measured = {{.workers = 2, .size_bytes = 10, .seconds = 1e-6}},
                      .concurrent_collectives = 2,
                      .collective_slowdown = 1.5})
                .collective_slowdown,
            1.5);
  EXPECT_EQ(
      Resolved({.collective_slowdown = 1, .fidelity = Fidelity::kExpanded}).collective_slowdown, 1);
}

TEST(AllReduceTest, PointsAreTheAlgorithmUnlessItIsNamedAndAreSorted) {
  const MeasuredCollective small{.workers = 2, .size_bytes = 10, .seconds = 1e-6};
  const MeasuredCollective large{.workers = 2, .size_bytes = 1000, .seconds = 1e-4};
  const AllReduce job = Resolved({.measured = {large, small}});
  EXPECT_EQ(job.algorithm, CollectiveAlgorithm::kMeasured);
  EXPECT_EQ(job.measured, (std::vector{small, large}));
  EXPECT_EQ(
      Resolved({.measured = {large, small}, .concurrent_collectives = 3}).concurrent_collectives,
      3);
}

TEST(AllReduceTest, TheRecordingsBucketsCountUnlessOthersAreAskedFor) {
  ProfileDraft draft = GradientDraft();
  draft.buckets = RecordedBuckets{.sizes_bytes = {1000}};
  const Profile sizes = Profile::Create(draft).value();
  EXPECT_EQ(Resolved({}, sizes).fusion, Fusion(*draft.buckets));
  const Buckets rule{.first_bytes = 3, .cap_bytes = 4};
  EXPECT_EQ(Resolved({.fusion = rule}, sizes).fusion, Fusion(rule));
  draft.buckets = RecordedBuckets{.rule = rule};
  EXPECT_EQ(Resolved({}, Profile::Create(draft).value()).fusion, Fusion(rule));
}

TEST(AllReduceTest, LatenciesAreTypicalOnesWhereTheAlgorithmHasNone) {
  const auto latencies = [](const AllReduceDraft& job) {
    const AllReduce resolved = Resolved(job);
    return std::pair(resolved.latency_seconds, resolved.intra_node_latency_seconds);
  };
  using Algorithm = CollectiveAlgorithm;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kHierarchical, Algorithm::kTree,
                                    Algorithm::kHalvingDoubling, Algorithm::kGloo}) {
    AllReduceDraft job{.algorithm = algorithm};
    EXPECT_EQ(latencies(job), std::pair(25e-6, 0.0)) << NameOf(algorithm);
    job.workers_per_node = 2;
    job.intra_node_bandwidth_bytes_per_second = 1e9;
    EXPECT_EQ(latencies(job), std::pair(25e-6, 3.4e-6)) << NameOf(algorithm);
    job.latency_seconds = 0;
    job.intra_node_latency_seconds = 0;
    EXPECT_EQ(latencies(job), std::pair(0.0, 0.0)) << NameOf(algorithm);
  }
  EXPECT_EQ(latencies({.measured = {{.workers = 2, .size_bytes = 10, .seconds = 1e-6}}}),
            std::pair(0.0, 0.0));
  EXPECT_EQ(latencies({.algorithm = Algorithm::kNccl,
                       .workers_per_node = 2,
                       .intra_node_bandwidth_bytes_per_second = 1e9}),
            std::pair(0.0, 0.0));
}

TEST(AllReduceTest, PytorchWithoutBucketsGetsItsDefaultOnesUnlessAnythingElseIsAskedFor) {
  ProfileDraft draft = GradientDraft();
  const auto fusion_of = [&](const AllReduceDraft& job) {
    return Resolved(job, Profile::Create(draft).value()).fusion;
  };
  EXPECT_EQ(fusion_of({}), Fusion());
  draft.framework = "PyTorch";  // somebody's own word
  EXPECT_EQ(fusion_of({}), Fusion());
  draft.framework = "pytorch";
  EXPECT_EQ(fusion_of({}), Fusion(Buckets{.first_bytes = 1 << 20, .cap_bytes = 25 << 20}));
  EXPECT_EQ(fusion_of({.fusion = Unfused{}}), Fusion());
  EXPECT_EQ(fusion_of({.fusion = HorovodDraft{}}), Fusion(Horovod{}));
  EXPECT_EQ(fusion_of({.fusion = ByteSchedulerDraft{}}), Fusion(ByteScheduler{}));
  EXPECT_EQ(fusion_of({.fusion = Buckets{.cap_bytes = 7}}), Fusion(Buckets{.cap_bytes = 7}));
  draft.buckets = RecordedBuckets{.sizes_bytes = {1000}};
  EXPECT_EQ(fusion_of({}), Fusion(*draft.buckets));
  EXPECT_EQ(fusion_of({.fusion = Unfused{}}), Fusion());
}

TEST(AllReduceTest, LinksInsideANodeAreNeverPricedAsThoseBetweenNodes) {
  const auto is_refused = [](CollectiveAlgorithm algorithm, int32_t workers, int32_t per_node) {
    AllReduceDraft job{.algorithm = algorithm, .workers_per_node = per_node};
    if (algorithm == CollectiveAlgorithm::kMeasured)
      job.measured = {{.workers = 2, .size_bytes = 10, .seconds = 1e-6}};
    const std::vector<Fault> faults = FaultsOf(job, workers);
    if (faults.empty()) return false;
    EXPECT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].field, "all_reduce.intra_node_bandwidth_bytes_per_second");
    EXPECT_THAT(faults[0].description, HasSubstr("cluster preset"));
    job.intra_node_bandwidth_bytes_per_second = 1e8;  // if it is said to be so
    EXPECT_TRUE(FaultsOf(job, workers).empty());
    return true;
  };
  using Algorithm = CollectiveAlgorithm;
  for (const Algorithm algorithm :
       {Algorithm::kRing, Algorithm::kHierarchical, Algorithm::kHalvingDoubling, Algorithm::kTree,
        Algorithm::kGloo, Algorithm::kNccl}) {
    EXPECT_TRUE(is_refused(algorithm, 4, 4)) << NameOf(algorithm);
    EXPECT_TRUE(is_refused(algorithm, 2, 4)) << NameOf(algorithm);
    EXPECT_FALSE(is_refused(algorithm, 1, 4)) << NameOf(algorithm);
    EXPECT_FALSE(is_refused(algorithm, 4, 1)) << NameOf(algorithm);
    const bool counts_inside = algorithm == Algorithm::kRing ||
                               algorithm == Algorithm::kHierarchical ||
                               algorithm == Algorithm::kGloo;
    EXPECT_EQ(is_refused(algorithm, 8, 4), counts_inside) << NameOf(algorithm);
  }
  EXPECT_FALSE(is_refused(Algorithm::kMeasured, 4, 4));
  // A number of workers that is chosen later may be any.
  const AllReduceDraft tree{.algorithm = Algorithm::kTree, .workers_per_node = 4};
  EXPECT_FALSE(ResolveScenario(Gradient(), {.communication = tree}).ok());
}

struct FaultCase {
  AllReduceDraft job;
  std::string field;
  std::string says;
};

// Two computations, each with a gradient.
ProfileDraft TwoGradientsDraft() {
  ProfileDraft draft = GradientDraft();
  draft.operations.push_back(
      {.name = "more backward", .resource = Resource::kWorker, .waiting_for = {0}});
  draft.operations.push_back({.name = "other",
                              .resource = Resource::kCollective,
                              .size_bytes = 500,
                              .waiting_for = {2},
                              .collective = Collective::kAllReduce});
  draft.steps = {{.start_ns = {0, 10, 10, 20}, .end_ns = {10, 10, 20, 20}}};
  return draft;
}
Profile TwoGradients() { return Profile::Create(TwoGradientsDraft()).value(); }

GradientGroups Groups(std::vector<std::vector<std::string>> names) {
  GradientGroups groups;
  for (std::vector<std::string>& operations : names)
    groups.groups.push_back({.operations = std::move(operations)});
  return groups;
}

// Half the speed of computation with 1000 threads; 1e9 and 2e9 bytes per second with any.
Contention Contending() {
  return {.alpha2 = 5e-4, .overlapped = {.gamma1 = 1e9}, .alone = {.gamma1 = 2e9}};
}

TEST(AllReduceTest, GroupsAndContentionAreKeptAsTheyAreGiven) {
  EXPECT_EQ(
      Resolved({.latency_seconds = 0, .fusion = Groups({{"gradient"}, {"other"}})}, TwoGradients()),
      (AllReduce{.intra_node_bandwidth_bytes_per_second = 1e8,
                 .fusion = Groups({{"gradient"}, {"other"}})}));
  GradientGroups threaded = Groups({{"gradient"}, {"other"}});
  threaded.groups[1].threads = 1000;
  const AllReduceDraft draft{
      .latency_seconds = 0, .fusion = threaded, .contention = Contending(), .threads = 65'536 / 64};
  EXPECT_EQ(Resolved(draft, TwoGradients()),
            (AllReduce{.intra_node_bandwidth_bytes_per_second = 1e8,
                       .fusion = threaded,
                       .contention = Contending(),
                       .threads = 1024}));
  // Those of all groups are enough, unless something else is sent.
  threaded.groups[0].threads = 1;
  EXPECT_EQ(Resolved({.fusion = threaded, .contention = Contending()}, TwoGradients()).threads, 0);
  ProfileDraft with_broadcast = TwoGradientsDraft();
  with_broadcast.operations.push_back({.name = "broadcast",
                                       .resource = Resource::kCollective,
                                       .size_bytes = 9,
                                       .collective = Collective::kBroadcast});
  with_broadcast.steps[0].start_ns.push_back(0);
  with_broadcast.steps[0].end_ns.push_back(0);
  const std::vector<Fault> faults = FaultsOf({.fusion = threaded, .contention = Contending()}, 4,
                                             Profile::Create(with_broadcast).value());
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].field, "all_reduce.threads");
}

TEST(AllReduceTest, GroupsOfAProfileOfServersNameItsUploads) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e8}};
  draft.operations = {
      {.name = "pull", .resource = Resource::kDownlink, .size_bytes = 9, .parameter = "w"},
      {.name = "train", .resource = Resource::kWorker, .waiting_for = {0}},
      {.name = "push",
       .resource = Resource::kUplink,
       .size_bytes = 9,
       .waiting_for = {1},
       .parameter = "w"}};
  draft.steps = {{.start_ns = {0, 10, 20}, .end_ns = {10, 20, 30}}};
  const Profile profile = Profile::Create(draft).value();
  EXPECT_EQ(Resolved({.fusion = Groups({{"push"}})}, profile).fusion, Fusion(Groups({{"push"}})));
  const std::vector<Fault> faults = FaultsOf({.fusion = Groups({{"pull"}})}, 4, profile);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].field, "all_reduce.groups.groups[0].operations[0]");
  EXPECT_THAT(faults[0].description, HasSubstr(R"("pull" is not a gradient)"));
}

TEST(AllReduceTest, GroupsHoldEveryGradientOnceInGraphOrder) {
  const struct {
    GradientGroups groups;
    std::string field;
    std::string says;
  } cases[] = {
      {Groups({{"gradient", "nothing"}, {"other"}}), "[0].operations[1]",
       R"("nothing" is not an operation of the profile)"},
      {Groups({{"gradient"}, {"backward"}, {"other"}}), "[1].operations[0]",
       R"("backward" is not a gradient that is all-reduced)"},
      {Groups({{"gradient"}, {"other", "gradient"}}), "[1].operations[1]",
       R"("gradient" is groups[0].operations[0], too)"},
      {Groups({{"gradient"}, {}, {"other"}}), "[1].operations", "empty"},
      {Groups({{"gradient"}}), "", R"("other" is in none of them, one of 1 such of 2 gradients)"},
      {Groups({}), "", R"("gradient" is in none of them, one of 2 such)"},
      {Groups({{"other"}, {"gradient"}}), "[0].operations[0]",
       R"("other" stands where "gradient" does in graph order)"},
      {Groups({{"other", "gradient"}}), "[0].operations[0]", R"("other" stands where)"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.says);
    const std::vector<Fault> faults = FaultsOf({.fusion = one.groups}, 4, TwoGradients());
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].field, "all_reduce.groups.groups" + one.field);
    EXPECT_THAT(faults[0].description, HasSubstr(one.says));
  }
}

TEST(AllReduceTest, GroupsWithOtherFusionsAndThreadsWithoutContentionAreFaults) {
  const GradientGroups groups = Groups({{"gradient"}});
  GradientGroups threaded = groups;
  threaded.groups[0].threads = 5;
  const auto only = [](const AllReduceDraft& draft, const std::string& field,
                       const std::string& says) {
    SCOPED_TRACE(field + ": " + says);
    const std::vector<Fault> faults = FaultsOf(draft);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].field, "all_reduce." + field);
    EXPECT_THAT(faults[0].description, HasSubstr(says));
  };
  only({.threads = 7}, "threads", "7 given, which has no effect without contention");
  only({.fusion = threaded}, "groups.groups[0].threads", "5 given, which has no effect");
  threaded.groups[0].threads = 0;
  only({.fusion = threaded, .contention = Contending()}, "groups.groups[0].threads",
       "0 is not from 1 to 65536");
}

TEST(AllReduceTest, ContentionIsRefusedWhereItsRatesSayNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto with = [](auto change) {
    Contention contention = Contending();
    change(contention);
    return AllReduceDraft{.contention = contention, .threads = 1000};
  };
  const auto beside = [](AllReduceDraft draft) {
    draft.contention = Contending();
    draft.threads = 1000;
    return draft;
  };
  std::vector<FaultCase> cases = {
      {{.contention = Contending()}, "threads", "not given, and contention is"},
      {{.contention = Contending(), .threads = 0}, "threads", "0 is not from 1 to 65536"},
      {{.contention = Contending(), .threads = 65'537}, "threads", "65537"},
      {beside({.algorithm = CollectiveAlgorithm::kTree}), "contention", "the algorithm is TREE"},
      {beside({.algorithm = CollectiveAlgorithm::kGloo, .concurrent_collectives = 2}), "contention",
       "the algorithm is GLOO"},
      {beside({.workers_per_node = 2}), "contention", "workers_per_node is 2"},
      {beside({.fidelity = Fidelity::kExpanded}), "contention", "EXPANDED"},
      {beside({.workers_per_rack = 4, .rack_bandwidth_bytes_per_second = 1e9}), "workers_per_rack",
       "4 given, and the rates of a contention contain the racks"},
      {beside({.overlap_slowdown = 1.5}), "contention", "overlap_slowdown is 1.5, too"},
      {beside({.collective_slowdown = 1.5}), "contention", "collective_slowdown is 1.5, too"},
      {with([](auto& c) { c.alpha2 = 0.001; }), "contention.alpha2",
       "0.001 leaves computation 0 of its speed beside a collective with 1000 threads"},
      {with([](auto& c) { c.alpha2 = 0.01; }), "contention.alpha2", "-9 of its speed"},
      {with([](auto& c) { c.alpha2 = -0.001; }), "contention.alpha2", "2 of its speed"},
      {with([&](auto& c) { c.alpha1 = nan; }), "contention.alpha2", "nan of its speed"},
      {with([](auto& c) { c.overlapped = {}; }), "contention.overlapped",
       "with 1000 threads 0 is not from 1"},
      {with([](auto& c) { c.alone = {.gamma1 = 1e9, .gamma2 = 3e9}; }), "contention.alone",
       "with 1000 threads -2e+09 is not from 1"},
      {with([&](auto& c) { c.gamma4 = nan; }), "contention.overlapped",
       "with 1000 threads nan is not a finite number"},
  };
  for (const FaultCase& one : cases) {
    SCOPED_TRACE(one.field + ": " + one.says);
    const std::vector<Fault> faults = FaultsOf(one.job);
    ASSERT_FALSE(faults.empty());
    EXPECT_EQ(faults[0].field, "all_reduce." + one.field);
    EXPECT_THAT(faults[0].description, HasSubstr(one.says));
  }
}

TEST(AllReduceTest, EveryFaultIsNamedWithItsValue) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  const MeasuredCollective point{.workers = 2, .size_bytes = 10, .seconds = 1};
  const auto with = [&](auto change) {
    MeasuredCollective changed = point;
    changed.size_bytes = 20;
    change(changed);
    return AllReduceDraft{.measured = {point, changed}};
  };
  const std::vector<FaultCase> cases = {
      {{.latency_seconds = -1}, "latency_seconds", "-1 is not from 0 to 10"},
      {{.latency_seconds = nan}, "latency_seconds", "nan"},
      {{.workers_per_node = 0}, "workers_per_node", "0"},
      {{.intra_node_bandwidth_bytes_per_second = infinite},
       "intra_node_bandwidth_bytes_per_second",
       "finite"},
      {{.intra_node_latency_seconds = 11}, "intra_node_latency_seconds", "11"},
      {{.reduction_seconds_per_byte = 0.1}, "reduction_seconds_per_byte", "0.1"},
      {{.launch_seconds = infinite}, "launch_seconds", "inf"},
      {{.fusion = Buckets{.first_bytes = 0}}, "buckets.first_bytes", "0 is below 1"},
      {{.fusion = Buckets{.cap_bytes = -3}}, "buckets.cap_bytes", "-3 is below 1"},
      {{.fusion = HorovodDraft{}, .partition_bytes = 9}, "partition_bytes", "9 given, and horovod"},
      {{.fusion = HorovodDraft{}, .sharding = Sharding::kGradients}, "sharding", "horovod"},
      {{.fusion = ByteSchedulerDraft{.credit_bytes = 0}},
       "byte_scheduler.credit_bytes",
       "0 is not from 1"},
      {{.fusion = ByteSchedulerDraft{}, .sharding = Sharding::kGradients},
       "sharding",
       "byte_scheduler"},
      {{.fusion = ByteSchedulerDraft{}, .fidelity = Fidelity::kExpanded},
       "fidelity",
       "byte_scheduler by what is needed first"},
      {{.algorithm = CollectiveAlgorithm::kGloo,
        .fusion = HorovodDraft{},
        .concurrent_collectives = 2},
       "concurrent_collectives",
       "2 at once, and horovod"},
      {{.algorithm = CollectiveAlgorithm::kMeasured}, "measured", "MEASURED needs them"},
      {{.algorithm = CollectiveAlgorithm::kTree, .measured = {point}}, "measured", "TREE"},
      {{.measured = {point, point}}, "measured", "two times, 1 and 1 s"},
      {{.measured =
            {{.kind = Collective::kBroadcast, .workers = 2, .size_bytes = 1, .seconds = 1}}},
       "measured",
       "no ALL_REDUCE"},
      {with([](auto& p) { p.workers = 1; }), "measured[1].workers", "1"},
      {with([](auto& p) { p.size_bytes = 0; }), "measured[1].size_bytes", "0"},
      {with([](auto& p) { p.seconds = -1; }), "measured[1].seconds", "-1"},
      {with([&](auto& p) { p.seconds = nan; }), "measured[1].seconds", "nan"},
      {with([](auto& p) { p.kind = Collective::kUnspecified; }), "measured[1].kind", "kind"},
      {{.concurrent_collectives = 2}, "concurrent_collectives", "RING has not"},
      {{.algorithm = CollectiveAlgorithm::kGloo, .concurrent_collectives = 17},
       "concurrent_collectives",
       "17 is not from 1 to 16"},
      {{.partition_bytes = 0}, "partition_bytes", "0"},
      {{.algorithm = CollectiveAlgorithm::kGloo,
        .concurrent_collectives = 2,
        .sharding = Sharding::kFull},
       "concurrent_collectives",
       "2 at once, and FULL"},
      {{.overlap_slowdown = 0.9}, "overlap_slowdown", "0.9 is not from 1 to 100"},
      {{.collective_slowdown = 0.5}, "collective_slowdown", "0.5 is not from 1 to 100"},
      {{.collective_slowdown = 101}, "collective_slowdown", "101 is not from 1 to 100"},
      {{.collective_slowdown = std::nan("")}, "collective_slowdown", "nan is not from 1 to 100"},
      {{.collective_slowdown = 2, .fidelity = Fidelity::kExpanded},
       "collective_slowdown",
       "2 given, and the fidelity is EXPANDED"},
      {{.algorithm = CollectiveAlgorithm::kGloo,
        .concurrent_collectives = 2,
        .collective_slowdown = 2},
       "collective_slowdown",
       "2 given, and several of GLOO at once"},
      {{.nccl = Nccl{}}, "nccl", "the algorithm is RING"},
      {{.algorithm = CollectiveAlgorithm::kTree, .fidelity = Fidelity::kExpanded},
       "fidelity",
       "the algorithm is TREE"},
      {{.fusion = HorovodDraft{}, .fidelity = Fidelity::kExpanded}, "fidelity", "horovod fuses"},
      {{.measured = {{.workers = 2, .size_bytes = 10, .seconds = 1}},
        .workers_per_rack = 4,
        .rack_bandwidth_bytes_per_second = 1e9},
       "workers_per_rack",
       "4 given, and measured times contain the racks"},
      {{.fidelity = Fidelity::kExpanded, .workers_per_rack = 4},
       "rack_bandwidth_bytes_per_second",
       "not given"},
      {{.fidelity = Fidelity::kExpanded, .rack_bandwidth_bytes_per_second = 1e9},
       "rack_bandwidth_bytes_per_second",
       "workers_per_rack is not"},
      {{.fidelity = Fidelity::kExpanded,
        .workers_per_rack = 4,
        .rack_bandwidth_bytes_per_second = nan},
       "rack_bandwidth_bytes_per_second",
       "nan"},
      {{.fidelity = Fidelity::kExpanded,
        .workers_per_rack = 0,
        .rack_bandwidth_bytes_per_second = 1e9},
       "workers_per_rack",
       "0 is not from 1"},
      {{.workers_per_node = 4,
        .intra_node_bandwidth_bytes_per_second = 1e9,
        .fidelity = Fidelity::kExpanded,
        .workers_per_rack = 6,
        .rack_bandwidth_bytes_per_second = 1e9},
       "workers_per_rack",
       "6 is not a multiple of the 4 workers of a node"},
      {{.algorithm = CollectiveAlgorithm::kNccl, .nccl = Nccl{.channels = 65}},
       "nccl.channels",
       "65"},
      {{.algorithm = CollectiveAlgorithm::kNccl,
        .nccl = Nccl{.channel_bandwidth_bytes_per_second = -1}},
       "nccl.channel_bandwidth_bytes_per_second",
       "-1"},
  };
  for (const FaultCase& one : cases) {
    SCOPED_TRACE(one.field + ": " + one.says);
    const std::vector<Fault> faults = FaultsOf(one.job);
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].field, "all_reduce." + one.field);
    EXPECT_THAT(faults[0].description, HasSubstr(one.says));
  }
}

TEST(AllReduceTest, HorovodsOwnFieldsAreLookedAtToo) {
  std::vector<std::string> fields;
  for (const Fault& fault :
       FaultsOf({.fusion = HorovodDraft{.fusion_bytes = 0, .cycle_seconds = 0}}))
    fields.push_back(fault.field);
  EXPECT_THAT(fields, UnorderedElementsAre("all_reduce.horovod.fusion_bytes",
                                           "all_reduce.horovod.cycle_seconds"));
  EXPECT_EQ(Resolved({.fusion = HorovodDraft{.fusion_bytes = 7}}).fusion,
            Fusion(Horovod{.fusion_bytes = 7, .cycle_seconds = kHorovodCycleSeconds}));
}

TEST(AllReduceTest, LimitsAreThoseGiven) {
  const AllReduceLimits limits{.max_measured = 1, .max_pieces = 3};
  const auto fields = [&](const AllReduceDraft& job) {
    FaultList faults;
    ResolveAllReduce(Gradient(), job, 1e8, faults, limits);
    std::vector<std::string> found;
    for (const Fault& fault : std::move(faults).Take()) found.push_back(fault.field);
    return found;
  };
  const MeasuredCollective point{.workers = 2, .size_bytes = 10, .seconds = 1};
  EXPECT_THAT(fields({.measured = {point, {.workers = 3, .size_bytes = 1, .seconds = 1}}}),
              UnorderedElementsAre("all_reduce.measured"));
  EXPECT_THAT(fields({.partition_bytes = 333}), UnorderedElementsAre("all_reduce.partition_bytes"));
  EXPECT_THAT(fields({.partition_bytes = 334}), UnorderedElementsAre());
}

TEST(AllReduceTest, AProfileOfAllReducesMayBeAskedAboutAgainstServersWhereParametersAreNamed) {
  ProfileDraft draft = GradientDraft();
  for (Operation& operation : draft.operations) {
    if (operation.resource == Resource::kCollective) operation.parameter = "w";
  }
  const auto faults_of = [](const ProfileDraft& profile, const ParameterServersDraft& servers) {
    const absl::StatusOr<Scenario> scenario =
        ResolveScenario(Profile::Create(profile).value(), {.communication = servers});
    std::vector<std::string> found;
    for (const Fault& fault : DetailsOf(scenario.status()).faults)
      found.push_back(fault.field + ": " + fault.description);
    return found;
  };
  EXPECT_THAT(faults_of(draft, {.servers = 3}), ::testing::IsEmpty());
  EXPECT_THAT(faults_of(draft, {.servers = 1, .transfer_order = TransferOrder::kRecorded}),
              ::testing::ElementsAre(HasSubstr("parameter_servers.transfer_order: RECORDED")));
  const size_t at = draft.operations.size() - 1;
  ASSERT_EQ(draft.operations[at].resource, Resource::kCollective);
  ProfileDraft unnamed = draft;
  unnamed.operations[at].parameter.clear();
  EXPECT_THAT(faults_of(unnamed, {.servers = 1}),
              ::testing::ElementsAre(HasSubstr("names no parameter")));
  ProfileDraft broadcast = draft;
  broadcast.operations[at].collective = Collective::kBroadcast;
  EXPECT_THAT(faults_of(broadcast, {.servers = 1}),
              ::testing::ElementsAre(HasSubstr("is not an ALL_REDUCE")));
  ProfileDraft streams = draft;
  streams.operations.push_back({.name = "aside", .resource = Resource::kWorker, .stream = 1});
  for (RecordedStep& step : streams.steps) {
    step.start_ns.push_back(0);
    step.end_ns.push_back(1);
  }
  EXPECT_THAT(faults_of(streams, {.servers = 1}),
              ::testing::ElementsAre(HasSubstr("on another stream than 0")));
}

TEST(AllReduceTest, AProfileOfServersMustNameItsParametersAndHaveGradients) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e8}};
  draft.operations = {
      {.name = "recv", .resource = Resource::kDownlink, .size_bytes = 9, .parameter = "w"},
      {.name = "forward", .resource = Resource::kWorker, .waiting_for = {0}}};
  draft.steps = {{.start_ns = {0, 10}, .end_ns = {10, 20}}};
  std::vector<Fault> faults = FaultsOf({}, 4, Profile::Create(draft).value());
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].field, "all_reduce");
  EXPECT_THAT(faults[0].description, HasSubstr("neither a collective nor an upload"));
  draft.operations[0].parameter.clear();
  faults = FaultsOf({}, 4, Profile::Create(draft).value());
  ASSERT_FALSE(faults.empty());
  EXPECT_THAT(faults[0].description, HasSubstr(R"(operations[0], "recv", names no parameter)"));
}

TEST(AllReduceTest, WorkersFillNodesAndHalvingNeedsAPowerOfTwo) {
  const AllReduce four{.workers_per_node = 4};
  const AllReduce halving{.algorithm = CollectiveAlgorithm::kHalvingDoubling};
  std::vector<int32_t> fill;
  std::vector<int32_t> halve;
  for (int32_t workers = 1; workers <= 16; ++workers) {
    if (CanMeet(workers, four)) fill.push_back(workers);
    if (CanMeet(workers, halving)) halve.push_back(workers);
    EXPECT_EQ(FillsNodes(workers, four), CanMeet(workers, four));
    EXPECT_EQ(
        FaultsOf({.workers_per_node = 4, .intra_node_bandwidth_bytes_per_second = 1e9}, workers)
            .empty(),
        CanMeet(workers, four));
  }
  EXPECT_THAT(fill, ::testing::ElementsAre(1, 2, 3, 4, 8, 12, 16));
  EXPECT_THAT(halve, ::testing::ElementsAre(1, 2, 4, 8, 16));
  const std::vector<Fault> faults =
      FaultsOf({.algorithm = CollectiveAlgorithm::kHalvingDoubling, .workers_per_node = 4}, 6);
  ASSERT_EQ(faults.size(), 2U);
  for (const Fault& fault : faults) EXPECT_EQ(fault.field, "workers");
}

TEST(AllReduceTest, ServersForAProfileOfCollectivesAreRefused) {
  const absl::Status status =
      ResolveScenario(Gradient(), {.communication = ParameterServersDraft{}}).status();
  ASSERT_EQ(DetailsOf(status).faults.size(), 1U);
  EXPECT_EQ(DetailsOf(status).faults[0].field, "parameter_servers");
}

}  // namespace
}  // namespace stepcast::model_all_reduce_test
