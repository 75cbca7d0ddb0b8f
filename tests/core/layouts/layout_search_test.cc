#include "core/layouts/layout_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/predict/pipeline_prediction.h"
#include "core/predict/throughput.h"

namespace stepcast::layout_search_test {
namespace {

// Layers of unequal times, each with a gradient of 20 MB, that keep what they compute.
Profile Layers(int32_t count, int64_t kept_bytes = 100'000'000) {
  ProfileDraft draft{.batch_size = 2, .platform = {.bandwidth_bytes_per_second = 5e9}};
  RecordedStep step;
  int64_t now = 0;
  const auto add = [&](Operation operation, int64_t length) {
    draft.operations.push_back(std::move(operation));
    step.start_ns.push_back(now);
    now += length;
    step.end_ns.push_back(now);
    return static_cast<int32_t>(draft.operations.size()) - 1;
  };
  std::vector<int32_t> before;
  const auto ns = [](int32_t layer) { return 1'000'000 + layer * 37 % 11 * 100'000; };
  for (int32_t layer = 0; layer < count; ++layer)
    before = {add({.name = "forward/" + std::to_string(layer),
                   .resource = Resource::kWorker,
                   .waiting_for = before,
                   .kept_bytes = kept_bytes,
                   .pass = Pass::kForward,
                   .output_bytes = 4'000'000},
                  ns(layer))};
  for (int32_t layer = count; layer-- > 0;) {
    before = {add({.name = "backward/" + std::to_string(layer),
                   .resource = Resource::kWorker,
                   .waiting_for = before,
                   .pass = Pass::kBackward},
                  2 * ns(layer))};
    add({.name = "gradient/" + std::to_string(layer),
         .resource = Resource::kCollective,
         .size_bytes = 20'000'000,
         .waiting_for = before,
         .collective = Collective::kAllReduce},
        0);
  }
  draft.steps = {step};
  return Profile::Create(std::move(draft)).value();
}

// Examples per second with the reduction that is faster; nothing: its simulation fails.
std::optional<double> RateOf(const Profile& profile, const PipelinePredictor& predictor,
                             const LayoutCandidate& candidate) {
  std::optional<double> rate;
  for (const Scenario& scenario : candidate.scenarios) {
    const auto made =
        predictor.Predict(scenario, PlanPipeline(profile, scenario), NeverStop, InOrder());
    if (!made.ok()) return std::nullopt;
    rate = std::max(rate.value_or(0), made->prediction.examples_per_second);
  }
  return rate;
}

// Three devices leave two of a node of eight idle, so eight such replicas need a fourth node.
TEST(LayoutSearchTest, NoLayoutNeedsMoreNodesThanItsDevicesFill) {
  const Profile profile = Layers(12);
  ScenarioDraft scenario{.cluster = ClusterDraft{.bandwidth_bytes_per_second = 2.5e10,
                                                 .workers_per_node = 8,
                                                 .intra_node_bandwidth_bytes_per_second = 1e11}};
  const LayoutDraft draft{.scenario = scenario, .devices = 24, .micro_batches = 24};
  const absl::StatusOr<LayoutAnswer> answer =
      RecommendLayout(profile, ResolveLayouts(profile, draft).value(), NeverStop, InOrder(), {});
  ASSERT_TRUE(answer.ok()) << answer.status();
  for (const LayoutAnswer::Layout& ranked : answer->layouts)
    EXPECT_LE(ranked.prediction.scenario.NodesOf(ranked.prediction.scenario.workers), 3);
  EXPECT_TRUE(
      std::any_of(answer->refused.begin(), answer->refused.end(), [](const RefusedLayout& refused) {
        return refused.reason ==
               "workers: 8 replicas of 3 devices, of which nodes of 8 hold whole ones, need 4 "
               "nodes, and 24 devices are 3";
      }));
}

TEST(LayoutSearchTest, NoLayoutThatIsPrunedIsFasterThanTheBest) {
  const Profile profile = Layers(12);
  const absl::StatusOr<LayoutQuery> query =
      ResolveLayouts(profile, {.devices = 12, .micro_batches = 24, .max_layouts = 1});
  ASSERT_TRUE(query.ok()) << query.status();
  const absl::StatusOr<LayoutAnswer> answer =
      RecommendLayout(profile, *query, NeverStop, InOrder(), {});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_GT(answer->pruned, 0);
  const PipelinePredictor predictor(profile, query->options);
  const absl::StatusOr<WeighedLayouts> weighed = WeighLayouts(profile, *query, NeverStop);
  ASSERT_TRUE(weighed.ok()) << weighed.status();
  for (const LayoutCandidate& candidate : weighed->candidates) {
    const std::optional<double> rate = RateOf(profile, predictor, candidate);
    ASSERT_TRUE(rate.has_value());
    EXPECT_LE(*rate, answer->layouts[0].prediction.examples_per_second);
    // A single run's chance may beat the mean by a little.
    EXPECT_LE(*rate, candidate.bound * 1.02);
  }
}

// Every layout that fits simulated, the fastest first.
std::vector<double> AllRates(const Profile& profile, const LayoutQuery& query) {
  const PipelinePredictor predictor(profile, query.options);
  std::vector<double> rates;
  const absl::StatusOr<WeighedLayouts> weighed = WeighLayouts(profile, query, NeverStop);
  for (const LayoutCandidate& candidate : weighed.value().candidates) {
    if (const std::optional<double> rate = RateOf(profile, predictor, candidate))
      rates.push_back(*rate);
  }
  std::sort(rates.begin(), rates.end(), std::greater<>());
  return rates;
}

// The rows of the answer are the first of all layouts, none left out between; `least`: as many at
// least.
void CheckRanking(const Profile& profile, const LayoutDraft& draft, size_t least) {
  const absl::StatusOr<LayoutQuery> query = ResolveLayouts(profile, draft);
  ASSERT_TRUE(query.ok()) << query.status();
  const auto answer = RecommendLayout(profile, *query, NeverStop, InOrder(), {});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const std::vector<double> all = AllRates(profile, *query);
  ASSERT_GE(answer->layouts.size(), std::min(all.size(), least));
  for (size_t i = 0; i < answer->layouts.size(); ++i)
    EXPECT_EQ(answer->layouts[i].rate(), all[i]) << "row " << i << " of " << all.size();
  EXPECT_EQ(answer->layouts.size() + static_cast<size_t>(answer->pruned), all.size());
}

TEST(LayoutSearchTest, NoLayoutIsMissingAmongThoseThatAreListed) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 40; ++round) {
    const Profile profile = Layers(static_cast<int32_t>(4 + random() % 9));
    LayoutDraft draft{.devices = static_cast<int64_t>(2 + random() % 11),
                      .micro_batches = static_cast<int32_t>(1 + random() % 24),
                      .max_layouts = static_cast<int32_t>(1 + random() % 25)};
    draft.options.step_variation = StepSource::kAsRecorded;
    draft.scenario = ScenarioDraft{.bandwidth_bytes_per_second = 1e8 * (1 + random() % 60)};
    if (random() % 2 == 0)
      draft.schedules = {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward,
                         PipelineSchedule::kLoopedBreadthFirst};
    CheckRanking(profile, draft, static_cast<size_t>(*draft.max_layouts));
  }
}

TEST(LayoutSearchTest, ALongSearchRanksTheBestFiveAndListsNoneBehindAHole) {
  LayoutDraft draft{.devices = 64, .micro_batches = 128};
  draft.options.step_variation = StepSource::kAsRecorded;
  CheckRanking(Layers(96), draft, 5);
}

TEST(LayoutSearchTest, MemoryRefusesWhatNeedsMore) {
  const Profile profile = Layers(12);
  const auto ask = [&](int64_t memory) {
    const absl::StatusOr<LayoutQuery> query =
        ResolveLayouts(profile, {.devices = 12, .memory_bytes = memory, .micro_batches = 24});
    return WeighLayouts(profile, query.value(), NeverStop);
  };
  const size_t all = ask(0)->candidates.size();
  const absl::StatusOr<WeighedLayouts> some = ask(1'300'000'000);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_LT(some->candidates.size(), all);
  for (const LayoutCandidate& candidate : some->candidates)
    EXPECT_LE(candidate.memory_bytes, 1'300'000'000);
  EXPECT_TRUE(std::any_of(some->refused.begin(), some->refused.end(), [](const auto& refused) {
    return refused.reason.rfind("memory_bytes: device ", 0) == 0;
  }));
  EXPECT_FALSE(ask(1000).ok());
}

// By hand: one device of 12 layers with one forward in flight keeps 1.2 GB, and four times 240 MB.
TEST(LayoutSearchTest, MemoryIsWhatIsKeptAndTheParameters) {
  const Profile profile = Layers(12);
  const absl::StatusOr<LayoutQuery> query = ResolveLayouts(
      profile,
      {.devices = 1, .micro_batches = 3, .schedules = {PipelineSchedule::kOneForwardOneBackward}});
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(WeighLayouts(profile, *query, NeverStop)->candidates.at(0).memory_bytes,
            int64_t{1'200'000'000} + 4 * 240'000'000);
}

absl::StatusOr<LayoutAnswer> Ask(const Profile& profile, const LayoutDraft& draft) {
  const absl::StatusOr<LayoutQuery> query = ResolveLayouts(profile, draft);
  if (!query.ok()) return query.status();
  return RecommendLayout(profile, *query, NeverStop, InOrder(), {});
}

TEST(LayoutSearchTest, ALayoutWhoseDevicesWaitForEachOtherIsRefusedAlone) {
  const Profile profile = Layers(12);
  for (const PipelineReceives receives : {PipelineReceives::kFused, PipelineReceives::kPaired}) {
    LayoutDraft draft{.scenario = ScenarioDraft{.pipeline = PipelineDraft{.receives = receives}},
                      .devices = 4,
                      .micro_batches = 8};
    const absl::StatusOr<LayoutAnswer> answer = Ask(profile, draft);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_GE(answer->layouts.size(), 2);
    ASSERT_FALSE(answer->refused.empty());
    for (const RefusedLayout& refused : answer->refused) {
      EXPECT_EQ(refused.pipeline.schedule, PipelineSchedule::kInterleaved);
      EXPECT_EQ(refused.reason.rfind("PIPELINE_DEADLOCK: ", 0), 0) << refused.reason;
    }
    // A request with no other layout fails as its simulation did: one device is too small.
    draft.schedules = {PipelineSchedule::kInterleaved};
    draft.devices = 2;
    draft.memory_bytes = 1'900'000'000;
    EXPECT_EQ(DetailsOf(Ask(profile, draft).status()).reason, "PIPELINE_DEADLOCK");
  }
}

// By hand: 12 gradients of 20 MB are 960 MB of state on one device, and at least 240 MB on each of
// four.
TEST(LayoutSearchTest, MemoryIsALowerBoundWhereNothingSaysWhatIsKept) {
  const Profile profile = Layers(12, 0);
  const absl::StatusOr<LayoutAnswer> some =
      Ask(profile, {.devices = 4, .memory_bytes = 500'000'000, .micro_batches = 8});
  ASSERT_TRUE(some.ok()) << some.status();
  ASSERT_EQ(some->warnings.size(), 1);
  EXPECT_EQ(some->warnings[0].reason, Warning::Reason::kKeptBytesNotKnown);
  for (const LayoutAnswer::Layout& layout : some->layouts) {
    EXPECT_GE(layout.memory_bytes, 240'000'000);
    EXPECT_LE(layout.memory_bytes, 500'000'000);
  }
  EXPECT_TRUE(std::any_of(some->refused.begin(), some->refused.end(), [](const auto& refused) {
    return refused.reason == "memory_bytes: device 0 needs at least 960000000 of 500000000 bytes";
  }));
  const absl::Status none =
      Ask(profile, {.devices = 4, .memory_bytes = 1000, .micro_batches = 8}).status();
  EXPECT_EQ(DetailsOf(none).faults.at(0).field, "memory_bytes");
  EXPECT_TRUE(Ask(Layers(12), {.devices = 4, .micro_batches = 8})->warnings.empty());
}

TEST(LayoutSearchTest, AShardedOptimizerIsTriedWhereMemoryNeedsIt) {
  for (const int64_t memory : {450'000'000, 2'000'000'000}) {
    const absl::StatusOr<LayoutAnswer> answer =
        Ask(Layers(12, 0), {.devices = 4, .memory_bytes = memory, .micro_batches = 8});
    ASSERT_TRUE(answer.ok()) << answer.status();
    int sharded = 0;
    for (const LayoutAnswer::Layout& layout : answer->layouts) {
      const Scenario& scenario = layout.prediction.scenario;
      sharded += scenario.all_reduce().sharding == Sharding::kOptimizer;
      for (const LayoutAnswer::Layout& other : answer->layouts)
        EXPECT_TRUE(&layout == &other ||
                    !(scenario.pipeline->layout == other.prediction.scenario.pipeline->layout));
    }
    EXPECT_EQ(sharded > 0, memory == 450'000'000);
  }
}

// The reductions that layouts of several replicas are weighed with.
std::set<PipelineReduction> Reductions(const Profile& profile, const ScenarioDraft& common) {
  std::set<PipelineReduction> reductions;
  const auto query =
      ResolveLayouts(profile, {.scenario = common, .devices = 4, .micro_batches = 1});
  EXPECT_TRUE(query.ok()) << query.status();
  const auto weighed = WeighLayouts(profile, query.value(), NeverStop);
  for (const LayoutCandidate& candidate : weighed.value().candidates) {
    for (const Scenario& scenario : candidate.scenarios)
      if (scenario.workers > 1) reductions.insert(scenario.pipeline->reduction);
  }
  return reductions;
}

TEST(LayoutSearchTest, BothDefaultsOfReductionAreTriedWhereNothingSaysWhich) {
  const Profile profile = Layers(12);
  using enum PipelineReduction;
  EXPECT_EQ(Reductions(profile, {}), (std::set{kAtEnd, kBuckets}));
  for (const auto reduction : {kAtEnd, kByChunk})
    EXPECT_EQ(Reductions(profile, {.pipeline = PipelineDraft{.reduction = reduction}}),
              std::set{reduction});
  EXPECT_EQ(Reductions(profile, {.communication = AllReduceDraft{.fusion = Unfused{}}}),
            std::set{kBuckets});
}

// One stage of one micro-batch with DistributedDataParallel's buckets is a job without pipelines.
TEST(LayoutSearchTest, OneStageInBucketsIsTheJobWithoutPipelines) {
  const Profile profile = Layers(12);
  const absl::StatusOr<LayoutAnswer> answer =
      Ask(profile, {.devices = 4, .micro_batches = 1, .max_layouts = 100});
  ASSERT_TRUE(answer.ok()) << answer.status();
  const ScenarioDraft plain{.workers = 4, .communication = AllReduceDraft{.fusion = Buckets{}}};
  const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, {.scenarios = {plain}});
  ASSERT_TRUE(query.ok()) << query.status();
  const absl::StatusOr<ThroughputAnswer> predicted = PredictThroughput(profile, *query, NeverStop);
  ASSERT_TRUE(predicted.ok()) << predicted.status();
  const double rate = predicted->predictions.at(0).examples_per_second;
  int found = 0;
  for (const LayoutAnswer::Layout& layout : answer->layouts) {
    const Pipeline& pipeline = *layout.prediction.scenario.pipeline;
    if (pipeline.layout.devices > 1) continue;
    ++found;
    EXPECT_EQ(pipeline.reduction, PipelineReduction::kBuckets);
    EXPECT_NEAR(layout.rate(), rate, 0.01 * rate);
  }
  EXPECT_EQ(found, 1);
}

TEST(LayoutSearchTest, TheLeastMemoryIsFirstAndNoneThatNeedsLessIsPruned) {
  const Profile profile = Layers(12);
  const auto query = ResolveLayouts(profile, {.devices = 12,
                                              .micro_batches = 24,
                                              .objective = LayoutObjective::kMinMemory,
                                              .max_layouts = 2});
  const auto answer = RecommendLayout(profile, *query, NeverStop, InOrder(), {});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_GT(answer->pruned, 0);
  std::vector<int64_t> bytes;
  const absl::StatusOr<WeighedLayouts> weighed = WeighLayouts(profile, *query, NeverStop);
  for (const LayoutCandidate& candidate : weighed->candidates)
    bytes.push_back(candidate.memory_bytes);
  std::sort(bytes.begin(), bytes.end());
  ASSERT_EQ(answer->layouts.size(), 2);
  EXPECT_EQ(answer->layouts[0].memory_bytes, bytes[0]);
  EXPECT_EQ(answer->layouts[1].memory_bytes, bytes[1]);
  // How sure it is that the first is the best is asked of those that need as little alone.
  ASSERT_LT(bytes[0], bytes[1]);
  EXPECT_EQ(answer->layouts[0].probability_best, 1);
  EXPECT_EQ(answer->layouts[1].probability_best, 0);
  EXPECT_EQ(answer->expected_loss, 0);
}

// Numbers of chunks that are tried of so many stages.
std::vector<int32_t> ChunksOf(const LayoutQuery& query, int32_t stages) {
  std::vector<int32_t> chunks;
  for (const TriedLayout& tried : query.tried)
    if (tried.layout().devices == stages &&
        tried.layout().schedule == PipelineSchedule::kInterleaved)
      chunks.push_back(tried.layout().chunks);
  return chunks;
}

TEST(LayoutSearchTest, ChunksAreAllThatLayersAllowThoseThatDivideThemFirst) {
  const LayoutDraft draft{.devices = 8, .micro_batches = 8};
  const auto small = ResolveLayouts(Layers(12), draft);
  EXPECT_EQ(ChunksOf(*small, 4), (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(ChunksOf(*small, 2), (std::vector<int32_t>{2, 3, 6, 4, 5}));
  EXPECT_EQ(ChunksOf(*small, 1), std::vector<int32_t>());
  const auto large = ResolveLayouts(Layers(96), draft);
  EXPECT_EQ(ChunksOf(*large, 8), (std::vector<int32_t>{2, 3, 4, 6, 12, 5, 7, 8}));
  EXPECT_EQ(ChunksOf(*large, 2), (std::vector<int32_t>{2, 3, 4, 6, 8, 12, 16, 24}));
  // Micro-batches that no number of chunks makes divisible are refused once.
  const auto odd = ResolveLayouts(Layers(96), {.devices = 8, .micro_batches = 9});
  EXPECT_EQ(ChunksOf(*odd, 8).size(), 1);
}

TEST(LayoutSearchTest, AScheduleThatIsNamedTwiceIsTriedOnce) {
  const auto tried = [](std::vector<PipelineSchedule> schedules) {
    return ResolveLayouts(Layers(12),
                          {.devices = 4, .micro_batches = 8, .schedules = std::move(schedules)})
        ->tried.size();
  };
  constexpr auto kPlain = PipelineSchedule::kOneForwardOneBackward;
  EXPECT_EQ(tried({kPlain, kPlain}), tried({kPlain}));
}

TEST(LayoutSearchTest, WhatNoLayoutCanHaveIsNamed) {
  ScenarioDraft scenario;
  scenario.communication = AllReduceDraft{.sharding = Sharding::kFull};
  const auto answer = Ask(Layers(12), {.scenario = scenario, .devices = 4, .micro_batches = 8});
  EXPECT_EQ(DetailsOf(answer.status()).faults.at(0).field, "scenario.all_reduce.sharding");
}

}  // namespace
}  // namespace stepcast::layout_search_test
