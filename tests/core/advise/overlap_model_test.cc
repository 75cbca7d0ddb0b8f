#include "core/advise/overlap_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/random.h"
#include "tests/core/advise/naive_backward.h"

namespace stepcast::overlap_model_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two workers and no latency: a group of c bytes takes c seconds alone, 2 c beside computation,
// which then runs at 3/4.
OverlapSetting TwoToOne() {
  return {.workers = 2,
          .contention = {
              .alpha1 = 1, .alpha2 = 0.25, .overlapped = {.gamma1 = 0.5}, .alone = {.gamma1 = 1}}};
}

std::vector<double> PartsOf(const OverlapStage& stage) {
  return {stage.overlapped, stage.computation, stage.communication};
}

std::vector<std::string> FieldsOf(FaultList faults) {
  std::vector<std::string> fields;
  for (const Fault& fault : std::move(faults).Take()) fields.push_back(fault.field);
  return fields;
}

TEST(OverlapModelTest, TheStagesOfThreeGroupsFollowByHand) {
  const std::vector<BackwardLayer> layers = {{4, 1}, {3, 2}, {3, 2}};
  const BackwardTime time =
      BackwardTimeOf(layers, std::vector<TensorGroup>{{0, 1, 1}, {1, 1, 1}, {2, 1, 1}}, TwoToOne());
  ASSERT_EQ(time.stages.size(), 4U);
  EXPECT_THAT(PartsOf(time.stages[0]), ElementsAre(0, 4, 0));
  // 2 s beside the first, in which 1.5 of the second layer's 3 s are computed; the rest alone.
  EXPECT_THAT(PartsOf(time.stages[1]), ElementsAre(2, 1.5, 0));
  // The last layer takes 4 s beside it, and that is all it takes.
  EXPECT_THAT(PartsOf(time.stages[2]), ElementsAre(4, 0, 0));
  EXPECT_THAT(PartsOf(time.stages[3]), ElementsAre(0, 0, 2));
  EXPECT_DOUBLE_EQ(time.seconds, 13.5);
  EXPECT_DOUBLE_EQ(time.Exposed(), 2);
}

TEST(OverlapModelTest, WhatIsLeftOfAnAllReduceGoesOnAtItsOwnRate) {
  const std::vector<BackwardLayer> layers = {{1, 4}, {3, 0}};
  const BackwardTime time = BackwardTimeOf(layers, std::vector<TensorGroup>{{0, 2, 1}}, TwoToOne());
  // Ready after the layer that has parameters. Beside 4 s of slowed computation half of it is sent.
  EXPECT_THAT(PartsOf(time.stages[0]), ElementsAre(0, 1, 0));
  EXPECT_THAT(PartsOf(time.stages[1]), ElementsAre(4, 0, 2));
}

TEST(OverlapModelTest, AnAllReduceSendsTwiceItsShareAndWaitsForEveryLatency) {
  OverlapSetting setting = {.workers = 8, .latency_seconds = 1e-3};
  setting.contention = WithoutContention(1e6);
  const CollectiveRates rates = RatesOf(setting, 128);
  EXPECT_DOUBLE_EQ(rates.AloneSeconds(1e6), 14e-3 + 2 * 7 / 8.0);
  EXPECT_DOUBLE_EQ(rates.OverlappedSeconds(1e6), rates.AloneSeconds(1e6));
  EXPECT_EQ(rates.AloneSeconds(0), 0);
  EXPECT_EQ(rates.computation_speed, 1);
}

TEST(OverlapModelTest, WithoutContentionOrWithOneWorkerNothingIsSlowed) {
  const std::vector<BackwardLayer> layers = {{2, 3}, {4, 1}};
  const std::vector<TensorGroup> groups = {{0, 1, 1}, {1, 1, 1}};
  OverlapSetting setting{.workers = 2, .contention = WithoutContention(1)};
  EXPECT_DOUBLE_EQ(BackwardTimeOf(layers, groups, setting).seconds, 7);
  setting.workers = 1;
  EXPECT_DOUBLE_EQ(BackwardTimeOf(layers, groups, setting).seconds, 6);
}

TEST(OverlapModelTest, ThousandRandomPassesEndAsInstantByInstant) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random random({seed});
    const RandomBackward drawn = DrawBackward(random, 12);
    std::vector<TensorGroup> groups;
    for (int32_t i = 0; i < static_cast<int32_t>(drawn.layers.size()); ++i) {
      if (groups.empty() || random.Below(2) == 0)
        groups.push_back({.first = i, .threads = drawn.threads[random.Below(3)]});
      ++groups.back().count;
    }
    const BackwardTime time = BackwardTimeOf(drawn.layers, groups, drawn.setting);
    const double naive = NaiveBackwardSeconds(drawn.layers, groups, drawn.setting);
    ASSERT_NEAR(time.seconds, naive, 1e-9 * naive) << "seed " << seed;
    for (const OverlapStage& stage : time.stages)
      ASSERT_EQ(std::min(stage.computation, stage.communication), 0) << "seed " << seed;
  }
}

TEST(OverlapModelTest, AssumptionsThatFailAreNamedWithTheirThreads) {
  Contention contention{.alpha1 = 1, .alpha2 = 1e-4};
  contention.alone = {.gamma1 = 10};
  contention.overlapped = {.gamma1 = 8};
  const std::vector<int32_t> threads = {128, 4096};
  const OverlapAssumptions held = CheckAssumptions(contention, threads);
  EXPECT_TRUE(held.Hold());
  EXPECT_EQ(held.why, "");

  contention.overlapped.gamma1 = 4;  // 0.59 of computation and 0.4 of the transfer
  const OverlapAssumptions longer = CheckAssumptions(contention, threads);
  EXPECT_FALSE(longer.overlap_not_longer);
  EXPECT_TRUE(longer.transfer_not_faster);
  EXPECT_THAT(longer.why, HasSubstr("with 4096 threads a large all-reduce and computation"));
  EXPECT_TRUE(CheckAssumptions(contention, {threads.data(), 1}).Hold()) << "0.987 and 0.4";

  contention.overlapped.gamma1 = 11;
  const OverlapAssumptions faster = CheckAssumptions(contention, threads);
  EXPECT_FALSE(faster.transfer_not_faster);
  EXPECT_THAT(faster.why, HasSubstr("with 128 threads an all-reduce is faster beside"));

  contention.alpha1 = 1.1;
  const OverlapAssumptions both = CheckAssumptions(contention, threads);
  EXPECT_FALSE(both.computation_not_faster);
  EXPECT_THAT(both.why, HasSubstr("computation is faster beside an all-reduce than alone; with "));
}

TEST(OverlapModelTest, AnOverlapThatIsNotLongerByA3IsNotLonger) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random({seed});
    const RandomBackward drawn = DrawBackward(random, 1);
    for (const int32_t threads : drawn.threads) {
      const CollectiveRates rates = RatesOf(drawn.setting, threads);
      const double bytes = 1e9 * random.Unit();
      const double computation = random.Unit();
      const double beside = OverlapOf(rates, bytes, computation).Seconds();
      ASSERT_LE(beside, (rates.AloneSeconds(bytes) + computation) * (1 + 1e-9)) << "seed " << seed;
    }
  }
}

TEST(OverlapModelTest, BadConstantsAreNamed) {
  const auto fields_of = [](const Contention& contention, std::vector<int32_t> threads) {
    FaultList faults;
    CheckContention(contention, threads, faults);
    return FieldsOf(std::move(faults));
  };
  const Contention good = WithoutContention(1e9);
  EXPECT_THAT(fields_of(good, {1, 4096}), IsEmpty());
  EXPECT_THAT(fields_of(good, {}), ElementsAre("threads"));
  EXPECT_THAT(fields_of(good, {128, 0, -4}), ElementsAre("threads[1]", "threads[2]"));
  EXPECT_THAT(fields_of(good, std::vector<int32_t>(65, 1)), ElementsAre("threads"));
  Contention bad = good;
  bad.alpha2 = 1.0 / 4096;
  EXPECT_THAT(fields_of(bad, {4095}), IsEmpty());
  EXPECT_THAT(fields_of(bad, {128, 4096, 256}), ElementsAre("contention.alpha2"));
  bad.alpha2 = -1e-6;
  EXPECT_THAT(fields_of(bad, {1}), ElementsAre("contention.alpha2"));
  bad = good;
  bad.alpha1 = std::nan("");
  bad.overlapped.gamma3 = std::numeric_limits<double>::infinity();
  bad.alone = {.gamma1 = 1, .gamma2 = 2, .gamma3 = 1};
  EXPECT_THAT(fields_of(bad, {1}), ElementsAre("contention.alpha1", "contention.overlapped.gamma3"))
      << "2 / e bytes a second are taken off";
  bad.alone.gamma2 = 3;
  bad.gamma4 = 0;
  EXPECT_THAT(fields_of(bad, {1}),
              ElementsAre("contention.alpha1", "contention.overlapped.gamma3", "contention.alone"));
  bad.gamma4 = std::nan("");
  EXPECT_THAT(fields_of(bad, {1}), ElementsAre("contention.alpha1", "contention.gamma4"));
}

TEST(OverlapModelTest, BadSettingsLayersAndGroupsAreNamed) {
  FaultList faults;
  CheckSetting({.workers = 0, .latency_seconds = -1, .contention = WithoutContention(1)},
               std::vector<int32_t>{1}, faults);
  CheckSetting({.workers = 2'000'000, .contention = WithoutContention(0)}, std::vector<int32_t>{1},
               faults);
  CheckLayers({}, faults);
  CheckLayers(std::vector<BackwardLayer>{{1, 1}, {-1, -1}, {std::nan(""), 1}}, faults);
  EXPECT_THAT(FieldsOf(std::move(faults)),
              ElementsAre("workers", "latency_seconds", "workers", "contention.overlapped",
                          "contention.alone", "layers", "layers[1].seconds", "layers[1].bytes",
                          "layers[2].seconds"));
  FaultList of_groups;
  CheckGroups(std::vector<TensorGroup>{{0, 1, 1}, {1, 2, 1}}, 3, of_groups);
  EXPECT_TRUE(of_groups.empty());
  CheckGroups(std::vector<TensorGroup>{{0, 1, 1}, {2, 1, 1}}, 3, of_groups);
  CheckGroups(std::vector<TensorGroup>{{0, 4, 1}}, 3, of_groups);
  CheckGroups(std::vector<TensorGroup>{{0, 1, 1}, {1, 0, 1}}, 3, of_groups);
  CheckGroups(std::vector<TensorGroup>{{0, 2, 1}}, 3, of_groups);
  EXPECT_THAT(FieldsOf(std::move(of_groups)),
              ElementsAre("groups[1].first", "groups[0].count", "groups[1].count", "groups"));
}

}  // namespace
}  // namespace stepcast::overlap_model_test
