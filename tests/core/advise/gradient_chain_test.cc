#include "core/advise/gradient_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace stepcast::gradient_chain_test {
namespace {

using ::testing::ElementsAre;

Scenario Workers(int32_t workers, double latency_seconds = 0) {
  Scenario scenario{.workers = workers, .bandwidth_bytes_per_second = 1e9};
  scenario.communication =
      AllReduce{.latency_seconds = latency_seconds, .intra_node_bandwidth_bytes_per_second = 1e9};
  return scenario;
}

std::vector<CollectiveTiming> Gradients(const std::vector<int64_t>& bytes,
                                        const std::vector<double>& ready_seconds) {
  std::vector<CollectiveTiming> gradients;
  for (size_t i = 0; i < bytes.size(); ++i)
    gradients.push_back({.size_bytes = bytes[i], .ready_seconds = ready_seconds[i]});
  return gradients;
}

// Two workers: a gradient of n bytes takes 2 latencies and n ns.
TEST(GradientChainTest, AGroupBeginsWhenItsLastGradientIsReadyAndTheOneBeforeHasEnded) {
  const GradientChain chain(Gradients({1000, 2000, 3000}, {1e-6, 5e-6, 6e-6}), Workers(2, 1e-6));
  EXPECT_NEAR(chain.EndOf({1, 1, 1}), 5e-6 + 4e-6 + 5e-6, 1e-12) << "first: from 1 to 4 us";
  EXPECT_NEAR(chain.EndOf({3}), 6e-6 + 8e-6, 1e-12);
  EXPECT_NEAR(chain.EndOf({1, 2}), 6e-6 + 7e-6, 1e-12);
  EXPECT_THAT(chain.BytesOf({1, 2}), ElementsAre(1000, 5000));
  EXPECT_THAT(chain.SoonestEnd(NeverStop).value(), ElementsAre(1, 2));
}

TEST(GradientChainTest, OtherCollectivesAreNotOfTheChain) {
  std::vector<CollectiveTiming> collectives = Gradients({1000, 2000}, {1e-6, 2e-6});
  collectives.front().kind = Collective::kBroadcast;
  const GradientChain chain(collectives, Workers(2));
  EXPECT_THAT(chain.bytes(), ElementsAre(2000));
}

TEST(GradientChainTest, PiecesOfAGroupCostWhatTheyDoApart) {
  Scenario scenario = Workers(2, 1e-6);
  std::get<AllReduce>(scenario.communication).partition_bytes = 400;
  const GradientChain chain(Gradients({1000}, {0}), scenario);
  EXPECT_NEAR(chain.EndOf({1}), 3 * 2e-6 + 1e-6, 1e-12);
}

TEST(GradientChainTest, TheSoonestEndIsThatOfTheBestOfAllGroupings) {
  std::mt19937 random(1);
  const auto below = [&random](uint32_t limit) { return static_cast<double>(random() % limit); };
  int better_than_simple = 0;
  for (int round = 0; round < 500; ++round) {
    const size_t size = 1 + random() % 9;
    std::vector<int64_t> bytes;
    std::vector<double> ready;
    for (size_t i = 0; i < size; ++i) {
      bytes.push_back(1 + random() % 5000);
      // Mostly one after the other, as in a backward pass, but not always.
      ready.push_back((random() % 8 == 0 ? 0 : static_cast<double>(i) * 1e-6) + below(3000) * 1e-9);
    }
    const GradientChain chain(Gradients(bytes, ready),
                              Workers(static_cast<int32_t>(2 + random() % 7), below(3000) * 1e-9));
    double best = 1e9;
    const std::vector<std::vector<int32_t>> groupings = AllGroupings(size);
    for (const std::vector<int32_t>& counts : groupings) best = std::min(best, chain.EndOf(counts));
    const std::vector<int32_t> soonest = chain.SoonestEnd(NeverStop).value();
    ASSERT_DOUBLE_EQ(chain.EndOf(soonest), best) << "round " << round;
    ASSERT_DOUBLE_EQ(chain.LowerBoundOfEnd({}, NeverStop).value(), best);
    const double simple = std::min(chain.EndOf({static_cast<int32_t>(size)}),
                                   chain.EndOf(std::vector<int32_t>(size, 1)));
    better_than_simple += best < 0.999 * simple ? 1 : 0;
  }
  EXPECT_GT(better_than_simple, 100) << "the cases are of no interest";
}

TEST(GradientChainTest, WhereCollectivesGoSideBySideTheirBytesBoundTheEnd) {
  Scenario scenario = Workers(2, 1e-6);
  std::get<AllReduce>(scenario.communication).concurrent_collectives = 2;
  const GradientChain chain(Gradients({1000, 2000}, {3e-6, 4e-6}), scenario);
  EXPECT_NEAR(chain.LowerBoundOfEnd({}, NeverStop).value(), 3e-6 + 3e-6, 1e-12);
}

TEST(GradientChainTest, WithContentionTheBoundIsOfTheFastestThreads) {
  Scenario scenario = Workers(2, 1e-6);
  auto& job = std::get<AllReduce>(scenario.communication);
  job.contention =
      Contention{.overlapped = {.gamma1 = 1e9}, .alone = {.gamma1 = 2e9, .gamma2 = 1e9}};
  job.threads = 4;
  // Without gamma3 the rate is the same with any number of threads, and no faster alone: 1e9.
  const GradientChain same(Gradients({1000}, {0}), scenario);
  EXPECT_NEAR(same.LowerBoundOfEnd({8, 16}, NeverStop).value(), 3e-6, 1e-11);
  job.contention->alone.gamma3 = 1;
  // exp(-16^0.6) of 1e9 is missing with 16 threads, exp(-4^0.6) with 4.
  const GradientChain faster(Gradients({1000}, {0}), scenario);
  EXPECT_NEAR(faster.EndOf({1}), 2e-6 + 1000 / (2e9 - 1e9 * std::exp(-std::pow(4, 0.6))), 1e-11);
  EXPECT_NEAR(faster.LowerBoundOfEnd({8, 16}, NeverStop).value(),
              2e-6 + 1000 / (2e9 - 1e9 * std::exp(-std::pow(16, 0.6))), 1e-11);
}

TEST(GradientChainTest, AStopEndsIt) {
  const std::vector<int64_t> bytes(2000, 1000);
  const GradientChain chain(Gradients(bytes, std::vector<double>(2000)), Workers(2));
  EXPECT_EQ(chain.SoonestEnd([] { return absl::CancelledError("gone"); }).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(GroupingsTest, AllAreThereOnce) {
  const std::vector<std::vector<int32_t>> groupings = AllGroupings(6);
  EXPECT_EQ(std::set<std::vector<int32_t>>(groupings.begin(), groupings.end()).size(), 32U);
  for (const std::vector<int32_t>& counts : groupings)
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 6);
}

TEST(GroupingsTest, OneBoundaryAwayIsOneMoreOrLessOrMoved) {
  const std::vector<std::vector<int32_t>> groupings = OneBoundaryAway({2, 1, 3});
  EXPECT_EQ(std::set<std::vector<int32_t>>(groupings.begin(), groupings.end()),
            (std::set<std::vector<int32_t>>{
                {1, 1, 1, 3}, {2, 1, 1, 2}, {2, 1, 2, 1}, {3, 3}, {2, 4}, {1, 2, 3}, {2, 2, 2}}));
}

}  // namespace
}  // namespace stepcast::gradient_chain_test
