#include "core/communication/collective_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"

namespace stepcast::collective_time_test {
namespace {

constexpr double kMicro = 1e-6;

// A microsecond a message, a nanosecond a byte, another to add it; inside nodes half of the first
// two.
Scenario Four(CollectiveAlgorithm algorithm, int32_t workers_per_node = 1) {
  return {.workers = 4,
          .bandwidth_bytes_per_second = 1e9,
          .communication = AllReduce{.algorithm = algorithm,
                                     .latency_seconds = kMicro,
                                     .workers_per_node = workers_per_node,
                                     .intra_node_bandwidth_bytes_per_second = 2e9,
                                     .intra_node_latency_seconds = 0.5 * kMicro,
                                     .reduction_seconds_per_byte = 1e-9}};
}

// Microseconds of all-reduce, reduce-scatter, all-gather and broadcast of 1000 bytes.
std::vector<double> OfAllKinds(const Scenario& scenario) {
  const CollectiveTimes times(scenario);
  std::vector<double> result;
  for (const Collective kind : {Collective::kAllReduce, Collective::kReduceScatter,
                                Collective::kAllGather, Collective::kBroadcast})
    result.push_back(times.SecondsOf(kind, 1000) / kMicro);
  return result;
}

auto Near(const std::vector<double>& expected) {
  return ::testing::Pointwise(::testing::DoubleNear(1e-9), expected);
}

TEST(CollectiveTimeTest, ARingPassesItsShareOnInEachRound) {
  EXPECT_THAT(OfAllKinds(Four(CollectiveAlgorithm::kRing)),
              Near({6 * 1.25 + 0.75, 3 * 1.25 + 0.75, 3 * 1.25, 3 + 1}));
}

TEST(CollectiveTimeTest, ARingOnOneNodeUsesTheLinksInside) {
  EXPECT_THAT(OfAllKinds(Four(CollectiveAlgorithm::kRing, 4)),
              Near({6 * 0.625 + 0.75, 3 * 0.625 + 0.75, 3 * 0.625, 3 * 0.5 + 0.5}));
  EXPECT_THAT(OfAllKinds(Four(CollectiveAlgorithm::kRing, 8)),
              Near(OfAllKinds(Four(CollectiveAlgorithm::kRing, 4))));
}

TEST(CollectiveTimeTest, EveryRoundOfARingOverNodesTakesItsSlowestHop) {
  Scenario scenario = Four(CollectiveAlgorithm::kRing, 2);
  EXPECT_NEAR(OfAllKinds(scenario)[0], 6 * 1.25 + 0.75, 1e-9);
  std::get<AllReduce>(scenario.communication).intra_node_latency_seconds = 2 * kMicro;
  EXPECT_NEAR(OfAllKinds(scenario)[0], 6 * 2.125 + 0.75, 1e-9);
  EXPECT_NEAR(OfAllKinds(scenario)[1], 3 * 2.125 + 0.75, 1e-9);
}

TEST(CollectiveTimeTest, AHierarchyWorksInsideTheNodesAndThenBetweenThem) {
  // Inside, halves: 0.75, and 0.5 of adding. Between, as many rings as workers of a node share the
  // link: halves of 500 bytes at half of it, 1.5 a round, and 0.25 of adding.
  EXPECT_THAT(OfAllKinds(Four(CollectiveAlgorithm::kHierarchical, 2)),
              Near({(0.75 + 0.5) + (2 * 1.5 + 0.25) + 0.75, (0.75 + 0.5) + (1.5 + 0.25), 0.75 + 1.5,
                    (0.5 + 0.5) + (1 + 1)}));
  for (const int32_t per_node : {1, 4}) {
    EXPECT_THAT(OfAllKinds(Four(CollectiveAlgorithm::kHierarchical, per_node)),
                Near(OfAllKinds(Four(CollectiveAlgorithm::kRing, per_node))));
  }
}

TEST(CollectiveTimeTest, HalvingAndDoublingHasFewerMessages) {
  EXPECT_THAT(OfAllKinds(Four(CollectiveAlgorithm::kHalvingDoubling)),
              Near({2 * (2 + 0.75) + 0.75, 2 + 0.75 + 0.75, 2 + 0.75, 2 + 1}));
}

TEST(CollectiveTimeTest, ATreeHasAsManyLevelsAsItNeeds) {
  Scenario scenario = Four(CollectiveAlgorithm::kTree);
  EXPECT_NEAR(OfAllKinds(scenario)[0], 2 * (2 + 1) + 1, 1e-9);
  scenario.workers = 5;
  EXPECT_NEAR(OfAllKinds(scenario)[0], 2 * (3 + 1) + 1, 1e-9);
}

TEST(CollectiveTimeTest, TheSlowestWorkersLinkCounts) {
  Scenario scenario = Four(CollectiveAlgorithm::kRing);
  scenario.worker_groups = {{.count = 3, .bandwidth_bytes_per_second = 1e9},
                            {.count = 1, .bandwidth_bytes_per_second = 0.25e9}};
  EXPECT_NEAR(OfAllKinds(scenario)[0], 6 * 2 + 0.75, 1e-9);
}

Scenario InRacks(Scenario scenario, int32_t workers_per_rack, double bytes_per_second) {
  auto& job = std::get<AllReduce>(scenario.communication);
  job.workers_per_rack = workers_per_rack;
  job.rack_bandwidth_bytes_per_second = bytes_per_second;
  return scenario;
}

TEST(CollectiveTimeTest, RacksSlowWhatCrossesThem) {
  // Two racks of two, whose links have half of a worker's rate.
  const auto racks = [](CollectiveAlgorithm algorithm, int32_t per_node = 1) {
    return OfAllKinds(InRacks(Four(algorithm, per_node), 2, 0.5e9));
  };
  // One message at a time in each direction.
  EXPECT_THAT(racks(CollectiveAlgorithm::kRing),
              Near({6 * 1.5 + 0.75, 3 * 1.5 + 0.75, 3 * 1.5, 3 + 2}));
  // Both workers of a node send at once.
  EXPECT_THAT(racks(CollectiveAlgorithm::kHierarchical, 2),
              Near({(0.75 + 0.5) + (2 * 2 + 0.25) + 0.75, (0.75 + 0.5) + (2 + 0.25), 0.75 + 2,
                    (0.5 + 0.5) + (1 + 2)}));
  // An all-reduce has 500 bytes for the neighbour and 250 for the other rack, where two messages
  // share the link; the others have 250 for the neighbour and 500 for the other rack.
  EXPECT_THAT(racks(CollectiveAlgorithm::kHalvingDoubling),
              Near({2 * (2 + 0.5 + 1) + 0.75, 2 + 0.25 + 2 + 0.75, 2 + 0.25 + 2, 2 + 2}));
  // The trees 0 <- 2 <- {1, 3} and 3 <- 1 <- {2, 0}: 500 bytes from 1 to 2 and from 2 to 0, from 2
  // to 1 and from 1 to 3.
  EXPECT_NEAR(racks(CollectiveAlgorithm::kTree)[0], 2 * (2 + 2) + 1, 1e-9);
  // Racks with room for all that their workers can send change nothing, and neither does one rack.
  for (const auto algorithm : {CollectiveAlgorithm::kRing, CollectiveAlgorithm::kHierarchical,
                               CollectiveAlgorithm::kHalvingDoubling, CollectiveAlgorithm::kTree,
                               CollectiveAlgorithm::kGloo, CollectiveAlgorithm::kNccl}) {
    SCOPED_TRACE(NameOf(algorithm));
    const Scenario alone = Four(algorithm);
    EXPECT_THAT(OfAllKinds(InRacks(alone, 2, 2e9)), Near(OfAllKinds(alone)));
    EXPECT_THAT(OfAllKinds(InRacks(alone, 4, 1)), Near(OfAllKinds(alone)));
    EXPECT_GT(OfAllKinds(InRacks(alone, 2, 1e6))[0], 10 * OfAllKinds(alone)[0]);
  }
}

// The most messages that leave or enter one rack, counted one by one.
int32_t FullestRack(const std::vector<std::pair<int32_t, int32_t>>& messages, int32_t per_rack) {
  std::map<int32_t, int32_t> out;
  std::map<int32_t, int32_t> in;
  int32_t most = 0;
  for (const auto& [from, to] : messages) {
    if (from / per_rack == to / per_rack) continue;
    most = std::max({most, ++out[from / per_rack], ++in[to / per_rack]});
  }
  return most;
}

// Messages of a binary tree to its root 0, from the root down: a member whose subtree reaches
// `reach` to either side has a member in the middle of each side, on the right the farthest there
// is.
void AddBelow(int32_t member, int32_t reach, int32_t members,
              std::vector<std::pair<int32_t, int32_t>>& messages) {
  if (reach < 2) return;
  messages.emplace_back(member - reach / 2, member);
  AddBelow(member - reach / 2, reach / 2, members, messages);
  for (int32_t right = reach / 2; right > 0; right /= 2) {
    if (member + right >= members) continue;
    messages.emplace_back(member + right, member);
    return AddBelow(member + right, right, members, messages);
  }
}

std::vector<std::pair<int32_t, int32_t>> TreeOf(int32_t members) {
  int32_t top = 1;
  while (2 * top < members) top *= 2;
  std::vector<std::pair<int32_t, int32_t>> messages = {{top, 0}};
  AddBelow(top, top, members, messages);
  EXPECT_EQ(messages.size(), static_cast<size_t>(members - 1));
  return messages;
}

TEST(CollectiveTimeTest, TheFullestRackIsFoundFor2000RandomFabrics) {
  // A link that nothing else limits shows how many messages share it.
  constexpr double kLink = 1e300;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Random random({seed, 77});
    const int32_t power = 1 << (1 + random.Below(8));
    const auto per_rack = static_cast<int32_t>(1 + random.Below(static_cast<uint64_t>(power)));
    for (int32_t distance = 1; distance < power; distance *= 2) {
      std::vector<std::pair<int32_t, int32_t>> messages;
      for (int32_t i = 0; i < power; ++i) messages.emplace_back(i, i ^ distance);
      const int32_t most = FullestRack(messages, per_rack);
      EXPECT_DOUBLE_EQ(RackLinks(power, per_rack, 1e9).OfPairs(kLink, distance),
                       most == 0 ? kLink : 1e9 / most);
    }
    const auto members = static_cast<int32_t>(2 + random.Below(200));
    const auto of_rack = static_cast<int32_t>(1 + random.Below(static_cast<uint64_t>(members)));
    std::vector<std::pair<int32_t, int32_t>> both = TreeOf(members);
    for (const auto& [from, to] : TreeOf(members)) {
      if (members % 2 == 0) {
        both.emplace_back(members - 1 - from, members - 1 - to);
      } else {
        both.emplace_back((from + 1) % members, (to + 1) % members);
      }
    }
    const int32_t most = FullestRack(both, of_rack);
    EXPECT_DOUBLE_EQ(RackLinks(members, of_rack, 1e9).OfDoubleTree(kLink),
                     most == 0 ? kLink : 2e9 / most);
  }
}

TEST(CollectiveTimeTest, OneWorkerHasNothingToSendButLaunches) {
  for (int algorithm = 0; algorithm <= static_cast<int>(CollectiveAlgorithm::kNccl); ++algorithm) {
    Scenario scenario = Four(static_cast<CollectiveAlgorithm>(algorithm));
    auto& job = std::get<AllReduce>(scenario.communication);
    job.launch_seconds = 3e-9;
    job.measured = {{.workers = 2, .size_bytes = 10, .seconds = 1}};
    scenario.workers = 1;
    const CollectiveTimes times(scenario);
    EXPECT_EQ(times.SecondsOf(Collective::kAllReduce, 1000), 0) << algorithm;
    EXPECT_EQ(times.TimeOf(Collective::kAllReduce, 1000), Nanoseconds(3)) << algorithm;
    EXPECT_EQ(times.MessagesOf(Collective::kAllReduce, 1000), RingMessages{}) << algorithm;
  }
}

TEST(CollectiveTimeTest, TheTimeIsThatOfTheLaunchAndTheAlgorithm) {
  Scenario scenario = Four(CollectiveAlgorithm::kRing);
  std::get<AllReduce>(scenario.communication).launch_seconds = 10 * kMicro;
  EXPECT_EQ(CollectiveTimes(scenario).TimeOf(Collective::kAllReduce, 1000), Nanoseconds(18'250));
}

TEST(CollectiveTimeTest, ContentionHasTheTimesOfARingAtBothOfItsRates) {
  Scenario scenario = Four(CollectiveAlgorithm::kRing);
  auto& job = std::get<AllReduce>(scenario.communication);
  job.launch_seconds = 10 * kMicro;
  job.contention = Contention{.overlapped = {.gamma1 = 2e9, .gamma2 = 1e9},
                              .alone = {.gamma1 = 2e9, .gamma2 = 1e9, .gamma3 = 1e3}};
  job.threads = 3;
  for (const Collective kind : {Collective::kAllReduce, Collective::kReduceScatter,
                                Collective::kAllGather, Collective::kBroadcast}) {
    Scenario without = scenario;
    std::get<AllReduce>(without.communication).contention.reset();
    const ContendingTimes found = CollectiveTimes(scenario).ContendingTimesOf(kind, 1000);
    EXPECT_EQ(found.overlapped, CollectiveTimes(without).TimeOf(kind, 1000));
    without.bandwidth_bytes_per_second = 2e9;
    EXPECT_EQ(found.alone, CollectiveTimes(without).TimeOf(kind, 1000));
    EXPECT_EQ(CollectiveTimes(scenario).TimeOf(kind, 1000), found.alone);
    // Threads of its own count, and one worker sends nothing.
    job.contention->alone.gamma3 = 1;
    const double rate = 2e9 - 1e9 * std::exp(-std::pow(2, 0.6));
    without.bandwidth_bytes_per_second = rate;
    EXPECT_EQ(CollectiveTimes(scenario).ContendingTimesOf(kind, 1000, 2).alone,
              CollectiveTimes(without).TimeOf(kind, 1000));
    job.contention->alone.gamma3 = 1e3;
  }
  scenario.workers = 1;
  EXPECT_EQ(CollectiveTimes(scenario).TimeOf(Collective::kAllReduce, 1000), Nanoseconds(10'000));
}

TEST(CollectivePartsTest, TheyAddUpToTheTime) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random({seed, 7});
    const auto workers = static_cast<int32_t>(2 + random.Below(20));
    const double latency = 1e-6 * static_cast<double>(random.Below(300));
    const double bandwidth = 1e8 * static_cast<double>(1 + random.Below(100));
    const double addition = 1e-10 * static_cast<double>(random.Below(100));
    Scenario scenario{.workers = workers,
                      .bandwidth_bytes_per_second = bandwidth,
                      .communication = AllReduce{.latency_seconds = latency,
                                                 .reduction_seconds_per_byte = addition}};
    const auto bytes = static_cast<int64_t>(1 + random.Below(uint64_t{1} << random.Below(32)));
    for (const Collective kind : {Collective::kAllReduce, Collective::kReduceScatter,
                                  Collective::kAllGather, Collective::kBroadcast}) {
      const double ring = CollectiveTimes(scenario).SecondsOf(kind, bytes);
      EXPECT_NEAR(RingParts(kind, static_cast<double>(bytes), workers)
                      .Seconds(latency, 1 / bandwidth, addition),
                  ring, 1e-12 * ring);
      std::get<AllReduce>(scenario.communication).algorithm = CollectiveAlgorithm::kGloo;
      // Each message's parts are rounded to ticks, and a link takes one at least.
      const double ticks = 1e-12 * 40'000;
      EXPECT_NEAR(GlooParts(kind, bytes, workers, latency, 1 / bandwidth, addition)
                      .Seconds(latency, 1 / bandwidth, addition),
                  CollectiveTimes(scenario).SecondsOf(kind, bytes), ticks)
          << "seed " << seed;
      std::get<AllReduce>(scenario.communication).algorithm = CollectiveAlgorithm::kRing;
    }
  }
}

Scenario MeasuredBy(int32_t workers, std::vector<MeasuredCollective> points) {
  return {.workers = workers,
          .bandwidth_bytes_per_second = 1,
          .communication = AllReduce{.algorithm = CollectiveAlgorithm::kMeasured,
                                     .measured = std::move(points)}};
}

double MeasuredSeconds(const Scenario& scenario, int64_t bytes,
                       Collective kind = Collective::kAllReduce) {
  return CollectiveTimes(scenario).SecondsOf(kind, bytes);
}

TEST(MeasuredTimeTest, LinesAreStraightInLogarithmsAndGoOnBeyond) {
  const Scenario scenario =
      MeasuredBy(4, {{.workers = 4, .size_bytes = 1000, .seconds = 1e-3},
                     {.workers = 4, .size_bytes = 100'000, .seconds = 1e-2},
                     {.workers = 4, .size_bytes = 1'000'000, .seconds = 1e-1}});
  EXPECT_NEAR(MeasuredSeconds(scenario, 1000), 1e-3, 1e-12);
  EXPECT_NEAR(MeasuredSeconds(scenario, 10'000), std::sqrt(10) * 1e-3, 1e-12);
  EXPECT_NEAR(MeasuredSeconds(scenario, 100'000), 1e-2, 1e-12);
  EXPECT_NEAR(MeasuredSeconds(scenario, 10'000'000), 1, 1e-9);
  EXPECT_NEAR(MeasuredSeconds(scenario, 10), 1e-4, 1e-12);
}

TEST(MeasuredTimeTest, BeyondThePointsNoMoreBytesTakeLessTime) {
  const Scenario scenario = MeasuredBy(4, {{.workers = 4, .size_bytes = 1000, .seconds = 2e-3},
                                           {.workers = 4, .size_bytes = 10'000, .seconds = 1e-3}});
  EXPECT_NEAR(MeasuredSeconds(scenario, 100'000), 1e-3, 1e-12);
  EXPECT_NEAR(MeasuredSeconds(scenario, 100), 2e-3, 1e-12);
  EXPECT_LT(MeasuredSeconds(scenario, 3000), 2e-3);
}

TEST(MeasuredTimeTest, WhatWasNotMeasuredFollowsARingsRatio) {
  const Scenario four = MeasuredBy(4, {{.workers = 4, .size_bytes = 1000, .seconds = 3e-3}});
  EXPECT_NEAR(MeasuredSeconds(four, 2000), 6e-3, 1e-12);
  EXPECT_NEAR(MeasuredSeconds(four, 1000, Collective::kReduceScatter), 1.5e-3, 1e-12);
  Scenario eight = four;
  eight.workers = 8;
  EXPECT_NEAR(MeasuredSeconds(eight, 1000), 3e-3 * (7.0 / 8) / (3.0 / 4), 1e-12);
}

TEST(MeasuredTimeTest, TheNearestNumberOfWorkersCountsAndTheKindItself) {
  std::vector<MeasuredCollective> points;
  for (const int64_t bytes : {1000, 10'000}) {
    const double seconds = 1e-6 * static_cast<double>(bytes);
    points.push_back({.workers = 2, .size_bytes = bytes, .seconds = seconds});
    points.push_back({.workers = 8, .size_bytes = bytes, .seconds = 5 * seconds});
    points.push_back({.kind = Collective::kAllGather,
                      .workers = 8,
                      .size_bytes = bytes,
                      .seconds = 7 * seconds});
  }
  EXPECT_NEAR(MeasuredSeconds(MeasuredBy(2, points), 2000), 2e-3, 1e-12);
  EXPECT_NEAR(MeasuredSeconds(MeasuredBy(8, points), 2000), 10e-3, 1e-12);
  EXPECT_NEAR(MeasuredSeconds(MeasuredBy(8, points), 2000, Collective::kAllGather), 14e-3, 1e-12);
  // Nearer to 8 than to 2 as a ratio.
  EXPECT_GT(MeasuredSeconds(MeasuredBy(6, points), 2000), 8e-3);
}

TEST(FitRingTest, WhatARingTookIsFoundAgain) {
  std::vector<MeasuredCollective> points;
  for (const int32_t workers : {2, 3, 8}) {
    for (const int64_t bytes : {100, 10'000, 30'000'000}) {
      const double rounds = 2.0 * (workers - 1);
      points.push_back({.workers = workers,
                        .size_bytes = bytes,
                        .seconds = rounds * (25e-6 + static_cast<double>(bytes) / workers / 3e9)});
    }
  }
  const FittedRing fitted = FitRing(points);
  EXPECT_NEAR(fitted.latency_seconds / 25e-6, 1, 1e-9);
  EXPECT_NEAR(fitted.bandwidth_bytes_per_second / 3e9, 1, 1e-6);
}

TEST(FitRingTest, TimesThatFallWithTheSizeStillGiveAPositiveLink) {
  const FittedRing fitted = FitRing({{.workers = 2, .size_bytes = 10, .seconds = 2e-3},
                                     {.workers = 2, .size_bytes = 1'000'000, .seconds = 1e-3}});
  EXPECT_GE(fitted.latency_seconds, 0);
  EXPECT_GT(fitted.bandwidth_bytes_per_second, 0);
  EXPECT_TRUE(std::isfinite(fitted.latency_seconds));
}

Scenario Gloo(int32_t workers) {
  return {.workers = workers,
          .bandwidth_bytes_per_second = 1e9,
          .communication = AllReduce{.algorithm = CollectiveAlgorithm::kGloo,
                                     .latency_seconds = 100e-9,
                                     .reduction_seconds_per_byte = 0.1e-9}};
}

TEST(GlooTimeTest, AChunkHasAtLeastTwoMessagesOfAtMostAMebibyte) {
  struct Case {
    int32_t workers;
    int64_t bytes;
    int32_t messages;  // of each half
    Span transmission;
  };
  const std::vector<Case> cases = {
      {2, 4, 2, Nanoseconds(1)},
      {3, 10, 4, Nanoseconds(2)},  // chunks of 4, the last is smaller
      {2, 4 << 20, 4 / 2, Nanoseconds(1 << 20)},
      {2, 8 << 20, 4, Nanoseconds(1 << 20)},
      {4, 8 << 20, 6, Nanoseconds(1 << 20)},
      {2, (6 << 20), 3, Nanoseconds(1 << 20)},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(&one - cases.data());
    const CollectiveTimes times(Gloo(one.workers));
    const RingMessages all = times.MessagesOf(Collective::kAllReduce, one.bytes);
    EXPECT_EQ(all.reducing, one.messages);
    EXPECT_EQ(all.gathering, one.messages);
    EXPECT_EQ(all.transmission, one.transmission);
    EXPECT_EQ(all.latency, Nanoseconds(100));
    EXPECT_EQ(times.MessagesOf(Collective::kReduceScatter, one.bytes).gathering, 0);
    EXPECT_EQ(times.MessagesOf(Collective::kAllGather, one.bytes).reducing, 0);
  }
}

TEST(GlooTimeTest, ARoundByHand) {
  // Two messages of a microsecond, added at 1.2 and 2.2; then two more, the last arrives at 4.3.
  EXPECT_EQ(CollectiveTimes(Gloo(2)).TimeOf(Collective::kAllReduce, 4000), Nanoseconds(4300));
  EXPECT_EQ(CollectiveTimes(Gloo(2)).TimeOf(Collective::kReduceScatter, 4000), Nanoseconds(2200));
  EXPECT_EQ(CollectiveTimes(Gloo(2)).TimeOf(Collective::kAllGather, 4000), Nanoseconds(2100));
  // Two rounds of each half without a gap, and the turn between the halves.
  EXPECT_EQ(CollectiveTimes(Gloo(3)).TimeOf(Collective::kAllReduce, 6000), Nanoseconds(8300));
}

// NCCL's own model, with Volta, Intel, 2 channels of 6 GB/s and no network latency: the golden
// values of a program that computes it from src/graph/tuning.cc, 2.30.7; microseconds of tree LL,
// LL128 and Simple, and of ring likewise.
struct NcclCase {
  int32_t nodes;
  int32_t per_node;
  int64_t bytes;
  double expected[6];
  NcclChoice::Algorithm algorithm;
  NcclChoice::Protocol protocol;
};

Scenario Nccl2x6(int32_t nodes, int32_t per_node) {
  return {.workers = nodes * per_node,
          .bandwidth_bytes_per_second = 12e9,
          .communication =
              AllReduce{.algorithm = CollectiveAlgorithm::kNccl,
                        .workers_per_node = per_node,
                        .intra_node_bandwidth_bytes_per_second = 12e9,
                        .nccl = {.channels = 2, .channel_bandwidth_bytes_per_second = 6e9}}};
}

TEST(NcclTimeTest, GoldenValuesToATenthOfAMicrosecond) {
  using Algorithm = NcclChoice::Algorithm;
  using Protocol = NcclChoice::Protocol;
  const std::vector<NcclCase> cases = {
      {8,
       1,
       64 << 10,
       {112.0, 86.1, 112.2, 95.7, 143.4, 397.9},
       Algorithm::kTree,
       Protocol::kLl128},
      {8,
       1,
       1 << 20,
       {1480.5, 402.7, 472.3, 382.4, 299.2, 541.3},
       Algorithm::kRing,
       Protocol::kLl128},
      {8,
       1,
       25 << 20,
       {20088.1, 5693.4, 6876.7, 7722.5, 4288.4, 4211.3},
       Algorithm::kRing,
       Protocol::kSimple},
      {4,
       8,
       25 << 20,
       {20086.5, 5693.9, 6904.7, 8543.9, 4745.0, 4769.9},
       Algorithm::kRing,
       Protocol::kLl128},
  };
  for (const NcclCase& one : cases) {
    SCOPED_TRACE(&one - cases.data());
    const Scenario scenario = Nccl2x6(one.nodes, one.per_node);
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 6; ++i) {
      const double seconds =
          NcclSeconds(scenario, one.bytes, i < 3 ? Algorithm::kTree : Algorithm::kRing,
                      static_cast<Protocol>(i % 3));
      EXPECT_NEAR(seconds * 1e6, one.expected[i], 0.1) << i;
      least = std::min(least, seconds);
    }
    const NcclChoice best = NcclBest(scenario, Collective::kAllReduce, one.bytes);
    EXPECT_EQ(best.algorithm, one.algorithm);
    EXPECT_EQ(best.protocol, one.protocol);
    EXPECT_EQ(best.seconds, least);
    EXPECT_EQ(CollectiveTimes(scenario).SecondsOf(Collective::kAllReduce, one.bytes), least);
  }
}

TEST(NcclTimeTest, WithoutNvlinkThereIsNoLl128) {
  Scenario scenario = Nccl2x6(1, 8);
  std::get<AllReduce>(scenario.communication).nccl.intra_node_path = Nccl::Path::kPci;
  for (const auto algorithm : {NcclChoice::Algorithm::kTree, NcclChoice::Algorithm::kRing}) {
    EXPECT_TRUE(
        std::isinf(NcclSeconds(scenario, 1 << 20, algorithm, NcclChoice::Protocol::kLl128)));
    EXPECT_FALSE(
        std::isinf(NcclSeconds(scenario, 1 << 20, algorithm, NcclChoice::Protocol::kSimple)));
  }
  EXPECT_NE(NcclBest(scenario, Collective::kAllReduce, 1 << 20).protocol,
            NcclChoice::Protocol::kLl128);
}

}  // namespace
}  // namespace stepcast::collective_time_test
