#include "core/model/stage_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace stepcast::stage_map_test {
namespace {

// A profile of operations that each last 1 ms, one after the other.
Profile ProfileOf(std::vector<Operation> operations) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  RecordedStep step;
  for (size_t i = 0; i < operations.size(); ++i) {
    step.start_ns.push_back(static_cast<int64_t>(i) * 1'000'000);
    step.end_ns.push_back(static_cast<int64_t>(i + 1) * 1'000'000);
  }
  draft.operations = std::move(operations);
  draft.steps = {step};
  return Profile::Create(std::move(draft)).value();
}

Operation Compute(std::string name, Pass pass, std::vector<int32_t> waiting_for = {},
                  std::string parameter = "", int64_t output_bytes = 0) {
  return {.name = std::move(name),
          .resource = Resource::kWorker,
          .waiting_for = std::move(waiting_for),
          .parameter = std::move(parameter),
          .pass = pass,
          .output_bytes = output_bytes};
}

Operation Gradient(std::string name, std::vector<int32_t> waiting_for, std::string parameter = "") {
  return {.name = std::move(name),
          .resource = Resource::kCollective,
          .size_bytes = 8,
          .waiting_for = std::move(waiting_for),
          .parameter = std::move(parameter),
          .collective = Collective::kAllReduce};
}

StageMap MapOf(const Profile& profile) {
  FaultList faults;
  StageMap map = MapStages(profile, "pipeline", faults);
  EXPECT_TRUE(faults.empty());
  return map;
}

TEST(StageMapTest, ABackwardBelongsWhereItsNameSays) {
  const Profile profile =
      ProfileOf({Compute("forward/a", Pass::kForward), Compute("forward/b", Pass::kForward, {0}),
                 Compute("backward_weight/a", Pass::kBackwardWeight, {1}),
                 Compute("backward_input/b", Pass::kBackwardInput, {1})});
  EXPECT_EQ(MapOf(profile).link_of, (std::vector<int32_t>{0, 1, 0, 1}));
  EXPECT_TRUE(MapOf(profile).splits_backward);
}

TEST(StageMapTest, WithoutNamesItBelongsToTheLastForwardThatItWaitsFor) {
  const Profile profile =
      ProfileOf({Compute("x", Pass::kForward), Compute("y", Pass::kForward, {0}),
                 Compute("dy", Pass::kBackward, {1}), Compute("dx", Pass::kBackward, {0, 2})});
  EXPECT_EQ(MapOf(profile).link_of, (std::vector<int32_t>{0, 1, 1, 0}));
}

TEST(StageMapTest, ThenToTheOneWithItsParameterOrItsGradients) {
  const Profile profile =
      ProfileOf({Compute("x", Pass::kForward, {}, "w0"), Compute("y", Pass::kForward, {0}, "w1"),
                 Compute("dy", Pass::kBackward, {1}), Compute("dx", Pass::kBackward, {2}, "w0"),
                 Gradient("g1", {2}, "w1"), Gradient("g0", {3}, "w0")});
  EXPECT_EQ(MapOf(profile).link_of, (std::vector<int32_t>{0, 1, 1, 0, 1, 0}));
}

TEST(StageMapTest, WhatSaysNothingGoesWithWhatItWaitsFor) {
  const Profile profile = ProfileOf(
      {Compute("load", Pass::kUnspecified), Compute("x", Pass::kForward, {0}),
       Compute("y", Pass::kForward, {1}), Compute("loss", Pass::kOther, {2}),
       Compute("dy", Pass::kBackward, {3}), Compute("dx", Pass::kBackward, {1, 4}),
       Compute("clip", Pass::kUnspecified, {5}), Gradient("g", {5}),
       Compute("after", Pass::kUnspecified, {7}), Compute("adam", Pass::kOptimizer, {8})});
  const StageMap map = MapOf(profile);
  EXPECT_EQ(map.link_of, (std::vector<int32_t>{0, 0, 1, 1, 1, 0, 0, 0, -1, -1}));
  EXPECT_EQ(map.role_of[3], StageRole::kForward);
  EXPECT_EQ(map.role_of[6], StageRole::kBackward);
  EXPECT_EQ(map.role_of[8], StageRole::kEndOfStep);
}

// A skip connection is sent through the cut beside what the layer before it makes.
TEST(StageMapTest, ACutSendsAllThatIsNeededBehindIt) {
  const Profile profile = ProfileOf(
      {Compute("a", Pass::kForward, {}, "", 100), Compute("b", Pass::kForward, {0}, "", 10),
       Compute("c", Pass::kForward, {0, 1}), Compute("da", Pass::kBackward, {2})});
  const StageMap map = MapOf(profile);
  EXPECT_EQ(BytesAtCut(profile, map, 1), 100);
  EXPECT_EQ(BytesAtCut(profile, map, 2), 110);
}

TEST(StageMapTest, CutsMakeTheSlowestStageFastest) {
  const Profile profile =
      ProfileOf({Compute("forward/a", Pass::kForward), Compute("forward/b", Pass::kForward),
                 Compute("forward/c", Pass::kForward), Compute("forward/d", Pass::kForward),
                 Compute("backward/d", Pass::kBackward), Compute("backward/c", Pass::kBackward),
                 Compute("backward/b", Pass::kBackward), Compute("backward/a", Pass::kBackward)});
  EXPECT_EQ(BestCuts(profile, MapOf(profile), 2), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(BestCuts(profile, MapOf(profile), 4), (std::vector<int32_t>{0, 1, 2, 3}));
}

// As long as recordings of large models are: neighbours are cut together.
TEST(StageMapTest, LongChainsAreCutToo) {
  std::vector<Operation> operations;
  for (int i = 0; i < 10'000; ++i)
    operations.push_back(Compute("forward/" + std::to_string(i), Pass::kForward));
  operations.push_back(Compute("backward", Pass::kBackward));
  const Profile profile = ProfileOf(std::move(operations));
  const std::vector<int32_t> first = BestCuts(profile, MapOf(profile), 4);
  ASSERT_EQ(first.size(), 4U);
  for (int32_t stage = 1; stage < 4; ++stage)
    EXPECT_NEAR(first[static_cast<size_t>(stage)], stage * 2500, 10);
}

// All cuts of so many links into so many stages.
std::vector<std::vector<size_t>> AllCuts(size_t links, size_t stages) {
  std::vector<std::vector<size_t>> all;
  for (uint64_t chosen = 0; chosen < uint64_t{1} << (links - 1); ++chosen) {
    std::vector<size_t> firsts{0};
    for (size_t i = 1; i < links; ++i)
      if ((chosen >> (i - 1) & 1) != 0) firsts.push_back(i);
    if (firsts.size() == stages) all.push_back(std::move(firsts));
  }
  return all;
}

std::vector<int64_t> CostsOf(const std::vector<ChainLink>& chain,
                             const std::vector<size_t>& firsts) {
  std::vector<int64_t> costs(firsts.size(), 0);
  for (size_t stage = 0; stage < firsts.size(); ++stage) {
    const size_t end = stage + 1 < firsts.size() ? firsts[stage + 1] : chain.size();
    for (size_t i = firsts[stage]; i < end; ++i) costs[stage] += chain[i].cost_ns;
  }
  return costs;
}

// The slowest stage, bytes at the cuts, the sum of squares, and the cuts from the last one on.
auto KeyOf(const std::vector<ChainLink>& chain, const std::vector<size_t>& firsts) {
  const std::vector<int64_t> costs = CostsOf(chain, firsts);
  int64_t bytes = 0;
  for (size_t stage = 1; stage < firsts.size(); ++stage)
    bytes += chain[firsts[stage] - 1].output_bytes;
  int64_t squares = 0;
  for (const int64_t cost : costs) squares += cost * cost;
  return std::tuple(*std::max_element(costs.begin(), costs.end()), bytes, squares,
                    std::vector<size_t>(firsts.rbegin(), firsts.rend()));
}

std::vector<ChainLink> RandomChain(Random& random, size_t links) {
  std::vector<ChainLink> chain(links);
  for (ChainLink& link : chain)
    link = {.cost_ns = static_cast<int64_t>(random.Below(6)),
            .output_bytes = static_cast<int64_t>(random.Below(3))};
  return chain;
}

TEST(StageCutTest, NoCutIsBetter) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed});
    const std::vector<ChainLink> chain = RandomChain(random, 1 + random.Below(9));
    const size_t stages = 1 + random.Below(chain.size());
    const std::vector<size_t> firsts = CutIntoStages(chain, stages);
    std::vector<size_t> best = firsts;
    for (const std::vector<size_t>& other : AllCuts(chain.size(), stages))
      if (KeyOf(chain, other) < KeyOf(chain, best)) best = other;
    EXPECT_EQ(firsts, best);
  }
}

// Equal layers that stages cannot share evenly: none is left with one beside others with three.
TEST(StageCutTest, StagesAreEven) {
  const std::vector<ChainLink> ten(10, ChainLink{.cost_ns = 3, .output_bytes = 100});
  std::vector<int64_t> costs = CostsOf(ten, CutIntoStages(ten, 4));
  std::sort(costs.begin(), costs.end());
  EXPECT_EQ(costs, (std::vector<int64_t>{6, 6, 9, 9}));
}

TEST(StageCutTest, OfEquallyFastCutsTheOneThatSendsLess) {
  EXPECT_EQ(CutIntoStages({{5, 900}, {0, 100}, {0, 500}, {5, 0}}, 2), (std::vector<size_t>{0, 2}));
}

}  // namespace
}  // namespace stepcast::stage_map_test
