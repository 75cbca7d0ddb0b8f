#include "core/advise/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

#include "core/advise/baselines.h"
#include "core/advise/strategy_query.h"
#include "core/base/index.h"
#include "core/predict/throughput.h"
#include "core/zoo/model_zoo.h"
#include "tests/core/advise/chain_job.h"

namespace stepcast::strategy_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

StrategyQuery Resolved(const Profile& profile, const StrategyDraft& draft) {
  absl::StatusOr<StrategyQuery> query = ResolveStrategies(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  return *std::move(query);
}

std::vector<double> Rates(const Profile& profile, const Scenario& scenario) {
  ThroughputQuery query{.scenarios = {scenario}};
  query.options = *ResolveOptions({.steps_per_worker = 40, .warmup_steps = 5, .replications = 2});
  const absl::StatusOr<ThroughputAnswer> answer = PredictThroughput(profile, query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return {answer->predictions[0].steps_per_second, answer->predictions[0].step_time.mean,
          answer->predictions[0].confidence_interval.lower};
}

Profile Zoo(const char* model) {
  return BuildZooProfile(model, {.platform = {.bandwidth_bytes_per_second = 1.25e9},
                                 .variation = {.own = 0.05, .common = 0.05},
                                 .communication = ZooCommunication::kAllReduce})
      .value();
}

// Fused tensors of the zoo's buckets, as the scenario's buckets make them.
TEST(ApplyTest, GroupsAreTheScenariosBucketsToTheTick) {
  for (const char* model : {"resnet18", "vgg16"}) {
    const Profile profile = Zoo(model);
    const StrategyQuery query = Resolved(profile, {.scenario = {.workers = 3}});
    ASSERT_TRUE(std::holds_alternative<Buckets>(query.scenario.all_reduce().fusion) ||
                std::holds_alternative<RecordedBuckets>(query.scenario.all_reduce().fusion));
    Strategy strategy;
    int64_t filled = 0;
    bool is_first = true;
    for (const FusedTensors& alone : NothingFused(profile).tensors) {
      if (filled == 0) strategy.tensors.emplace_back();
      strategy.tensors.back().gradients.push_back(alone.gradients.front());
      filled += profile.operations()[Index(alone.gradients.front())].size_bytes;
      if (filled >= (is_first ? kFirstBucketBytes : kBucketCapBytes)) {
        filled = 0;
        is_first = false;
      }
    }
    const FusionCosts costs(profile, {}, std::nullopt);
    const auto applied = Apply(profile, query.scenario, strategy, costs);
    ASSERT_TRUE(applied.ok()) << applied.status();
    EXPECT_EQ(Rates(applied->profile, applied->scenario), Rates(profile, query.scenario)) << model;
  }
}

TEST(ApplyTest, PartsAreThoseThatAPartitionMakes) {
  const ChainJob job{.lengths_ns = {5000, 5000}, .gradient_bytes = {{8000}, {8000}}};
  const Profile profile = ProfileOf(job, {1, 1.1, 0.9});
  const StrategyQuery query = Resolved(profile, {.scenario = RingOf(4, 1e-7)});
  Strategy strategy = NothingFused(profile);
  for (FusedTensors& tensors : strategy.tensors) tensors.partitions = 4;
  const FusionCosts costs(profile, {}, std::nullopt);
  const auto applied = Apply(profile, query.scenario, strategy, costs);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(applied->profile.operations().size(), profile.operations().size() + 6);
  Scenario cut = query.scenario;
  std::get<AllReduce>(cut.communication).partition_bytes = 2000;
  EXPECT_EQ(Rates(applied->profile, applied->scenario), Rates(profile, cut));
}

TEST(ApplyTest, PartsAddUpToTheWhole) {
  const ChainJob job{.lengths_ns = {5000}, .gradient_bytes = {{1001}}};
  const Profile profile = ProfileOf(job);
  const StrategyQuery query = Resolved(profile, {.scenario = RingOf(4, 1e-7)});
  Strategy strategy = NothingFused(profile);
  strategy.tensors[0].partitions = 3;
  const auto applied =
      Apply(profile, query.scenario, strategy, FusionCosts(profile, {}, std::nullopt));
  ASSERT_TRUE(applied.ok());
  std::vector<int64_t> sizes;
  std::vector<std::string> names;
  for (const Operation& operation : applied->profile.operations()) {
    if (operation.resource != Resource::kCollective) continue;
    sizes.push_back(operation.size_bytes);
    names.push_back(operation.name);
  }
  EXPECT_THAT(sizes, ElementsAre(333, 334, 334));
  EXPECT_THAT(names, ElementsAre("gradient/0/0", "gradient/0/0#2", "gradient/0/0#3"));
  EXPECT_THAT(applied->profile.operations().back().waiting_for, ElementsAre(0, 1, 2, 3));
}

TEST(ApplyTest, FusedComputationsTakeWhatTheyCostAndDelayWhatWaitsForThem) {
  const ChainJob job{.lengths_ns = {4000, 6000, 5000}, .gradient_bytes = {{100}, {100}, {100}}};
  const Profile profile = ProfileOf(job, {1, 2});
  const StrategyQuery query = Resolved(profile, {.scenario = RingOf(2, 1e-7)});
  Strategy strategy = NothingFused(profile);
  strategy.fused = {{0, 2}};
  // Of the mean of 15 us, 12 us: in each step four fifths of what it was.
  const std::vector<FusedCost> table = {{.operations = {0, 2}, .seconds = 12e-6}};
  const FusionCosts costs(profile, table, std::nullopt);
  const auto applied = Apply(profile, query.scenario, strategy, costs);
  ASSERT_TRUE(applied.ok()) << applied.status();
  const std::vector<Operation>& operations = applied->profile.operations();
  ASSERT_EQ(operations.size(), profile.operations().size() - 1);
  EXPECT_EQ(operations[1].name, "compute/1");
  EXPECT_THAT(operations[0].waiting_for, ElementsAre(1)) << "gradient/0/0 waits for both";
  EXPECT_THAT(operations[2].waiting_for, ElementsAre(1));
  for (const size_t step : {0, 1}) {
    const RecordedStep& recorded = applied->profile.steps()[step];
    EXPECT_EQ(recorded.end_ns[1] - recorded.start_ns[1], step == 0 ? 8000 : 16000);
  }
  const FusionCosts estimate(profile, {}, 0.8);
  EXPECT_NEAR(*estimate.SecondsOf(std::vector<int32_t>{0, 2, 4}), 19.5e-6, 1e-12);
  EXPECT_FALSE(costs.SecondsOf(std::vector<int32_t>{2, 4}).has_value()) << "not in the table";
}

TEST(ApplyTest, AnOperationThatWouldWaitForItselfIsRefused) {
  const ChainJob job{.lengths_ns = {4000}, .gradient_bytes = {{100}}};
  const Profile profile = ProfileOf(job);
  const StrategyQuery query = Resolved(profile, {.scenario = RingOf(2, 1e-7)});
  Strategy strategy = NothingFused(profile);
  strategy.fused = {{0, 2}};  // with the optimizer, between which the gradient is sent
  const auto applied = Apply(profile, query.scenario, strategy, FusionCosts(profile, {}, 0.5));
  EXPECT_TRUE(absl::IsInvalidArgument(applied.status())) << applied.status();
}

// What is applied once is a profile in which the same strategy's operations are there already.
TEST(ApplyTest, TheSameStrategyTwiceIsTheSame) {
  std::mt19937_64 random(9);
  for (int seed = 0; seed < 60; ++seed) {
    const ChainJob job = RandomChain(random, 8);
    const Profile profile = ProfileOf(job, {1, 1.2});
    const StrategyQuery query = Resolved(profile, {.scenario = RingOf(4, 1e-7)});
    Strategy strategy = NothingFused(profile);
    for (FusedTensors& tensors : strategy.tensors) {
      // No part is empty.
      const Operation& gradient = profile.operations()[Index(tensors.gradients.front())];
      tensors.partitions = static_cast<int32_t>(
          std::min(gradient.size_bytes, static_cast<int64_t>(1 + random() % 3)));
    }
    const FusionCosts costs(profile, {}, 0.8);
    const auto once = Apply(profile, query.scenario, strategy, costs);
    const auto again = Apply(profile, query.scenario, strategy, costs);
    ASSERT_TRUE(once.ok() && again.ok()) << once.status();
    EXPECT_EQ(once->profile.content(), again->profile.content());
    const Strategy nothing = NothingFused(once->profile);
    const FusionCosts then(once->profile, {}, 0.8);
    const auto kept = Apply(once->profile, once->scenario, nothing, then);
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_EQ(kept->profile.content(), once->profile.content()) << "seed " << seed;
  }
}

// The chain's gradients, and what waits for them, part its computations; nothing else does.
TEST(AllFusedTest, ComputationsThatNoExchangePartsAreOne) {
  const Profile profile =
      ProfileOf({.lengths_ns = {10, 20, 30}, .gradient_bytes = {{}, {100}, {100}}});
  // compute/0 to compute/2 are one; the optimizer waits for their gradients.
  ASSERT_EQ(profile.operations().back().name, "optimizer");
  const std::vector<std::vector<int32_t>> groups = AllFused(profile);
  ASSERT_EQ(groups.size(), 1u);
  std::vector<std::string> names;
  for (const int32_t op : groups[0]) names.push_back(profile.operations()[Index(op)].name);
  EXPECT_THAT(names, ElementsAre("compute/0", "compute/1", "compute/2"));
}

TEST(AllFusedTest, WhatWaitsThroughAnotherStreamIsNotOneWithIt) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {
      {.name = "a", .resource = Resource::kWorker},
      {.name = "b", .resource = Resource::kWorker, .waiting_for = {0}},
      {.name = "beside", .resource = Resource::kWorker, .waiting_for = {1}, .stream = 1},
      {.name = "c", .resource = Resource::kWorker, .waiting_for = {2}},
      {.name = "d", .resource = Resource::kWorker, .waiting_for = {3}}};
  draft.steps = {{.start_ns = {0, 1, 2, 3, 4}, .end_ns = {1, 2, 3, 4, 5}}};
  EXPECT_THAT(AllFused(Profile::Create(draft).value()),
              ElementsAre(ElementsAre(0, 1), ElementsAre(3, 4)));
}

// Of every network: whatever is fused can be written as a profile.
TEST(AllFusedTest, OfTheZooCanBeApplied) {
  for (const char* model : {"resnet18", "inception_v3", "bert_base"}) {
    const Profile profile = Zoo(model);
    const StrategyQuery query = Resolved(profile, {.scenario = {.workers = 3}});
    Strategy strategy = NothingFused(profile);
    strategy.fused = AllFused(profile);
    ASSERT_FALSE(strategy.fused.empty());
    const FusionCosts costs(profile, {}, 0.8);
    const absl::StatusOr<AppliedStrategy> applied = Apply(profile, query.scenario, strategy, costs);
    ASSERT_TRUE(applied.ok()) << applied.status();
    EXPECT_LT(applied->profile.operations().size(), profile.operations().size() / 2);
  }
}

TEST(StreamOrdersTest, AreByTheRecordedStarts) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "late", .resource = Resource::kWorker},
                      {.name = "early", .resource = Resource::kWorker},
                      {.name = "aside", .resource = Resource::kWorker, .stream = 1}};
  draft.steps = {{.start_ns = {10, 0, 3}, .end_ns = {20, 10, 5}}};
  const Profile profile = Profile::Create(draft).value();
  EXPECT_THAT(StreamOrders(profile), ElementsAre(ElementsAre(1, 0), ElementsAre(2)));
  EXPECT_THAT(NothingFused(profile).tensors, IsEmpty());
}

}  // namespace
}  // namespace stepcast::strategy_test
