#include "core/network/first_come_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "core/network/equal_share_link.h"
#include "core/network/independent_links.h"
#include "core/network/link_level.h"
#include "core/network/max_min_network.h"
#include "core/network/path_network.h"
#include "tests/core/network/network_history.h"

namespace stepcast::first_come_network_test {
namespace {

constexpr int64_t kUnit = LinkLevel::kUnit;

using Ends = std::vector<std::pair<int64_t, int32_t>>;  // tick, flow

// Runs the network until nothing is left.
template <typename Network>
Ends RunOut(Network& network, Instant next) {
  Ends ends;
  while (next < kEndOfTime) {
    std::vector<int32_t> ended;
    network.TakeEnded(next, ended);
    std::sort(ended.begin(), ended.end());
    for (const int32_t flow : ended) ends.emplace_back(next.ticks, flow);
    next = network.Settle(next);
  }
  return ends;
}

TEST(FirstComeNetworkTest, ChunksOfOneInstantGoInOrderOfTheirWorkers) {
  FirstComeNetwork network(1, 3, EqualShareLink(3));
  network.Start(2, Span{10});
  network.Start(0, Span{20});
  network.Start(1, Span{30});
  EXPECT_EQ(RunOut(network, network.Settle(Instant{5})), (Ends{{25, 0}, {55, 1}, {65, 2}}));
}

TEST(FirstComeNetworkTest, AChunkThatArrivesAsAnotherEndsGoesBehindWhatWaits) {
  FirstComeNetwork network(1, 3, EqualShareLink(3));
  network.Start(0, Span{10});
  network.Start(2, Span{10});
  EXPECT_EQ(network.Settle(Instant{0}), Instant{10});
  std::vector<int32_t> ended;
  network.TakeEnded(Instant{10}, ended);
  network.Start(0, Span{10});
  EXPECT_EQ(RunOut(network, network.Settle(Instant{10})), (Ends{{20, 2}, {30, 0}}));
}

TEST(FirstComeNetworkTest, WhatWaitsIsNotCarried) {
  FirstComeNetwork network(1, 2, EqualShareLink(2));
  network.Start(0, Span{100});
  network.Start(1, Span{50});
  network.Settle(Instant{0});
  EXPECT_EQ(network.CarriedBy(Instant{60}, 0), 60);
}

TEST(FirstComeNetworkTest, TwoHubsThatServeOneWorkerShareItsLink) {
  FirstComeNetwork network(2, 2, MaxMinNetwork(2, {kUnit, kUnit}));
  network.Start(0, Span{100});  // worker 0, hub 0
  network.Start(1, Span{100});  // worker 0, hub 1
  network.Start(2, Span{100});  // worker 1, behind the first: its own link is free, its hub is not
  EXPECT_EQ(RunOut(network, network.Settle(Instant{0})), (Ends{{200, 0}, {200, 1}, {300, 2}}));
}

// The same by looking through everything that waits, each time.
class ObviousFirstCome {
 public:
  ObviousFirstCome(int32_t hubs, const std::vector<int64_t>& capacities)
      : hubs_(hubs),
        inner_(PathNetwork::Star(hubs, capacities)),
        serving_(static_cast<size_t>(hubs), false) {}

  void TakeEnded(Instant now, std::vector<int32_t>& ended) {
    std::vector<int32_t> now_ended;
    inner_.TakeEnded(now, now_ended);
    for (const int32_t flow : now_ended) serving_[static_cast<size_t>(flow % hubs_)] = false;
    ended.insert(ended.end(), now_ended.begin(), now_ended.end());
  }
  void Start(int32_t flow, Span work) { waiting_[{instant_, flow / hubs_, flow % hubs_}] = work; }
  Instant Settle(Instant now) {
    ++instant_;
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      const auto [arrival, worker, hub] = next->first;
      if (serving_[static_cast<size_t>(hub)]) {
        ++next;
        continue;
      }
      serving_[static_cast<size_t>(hub)] = true;
      inner_.Start(worker * hubs_ + hub, next->second);
      next = waiting_.erase(next);
    }
    return inner_.Settle(now);
  }
  int64_t CarriedBy(Instant now, int32_t hub) const { return inner_.CarriedBy(now, hub); }

 private:
  int32_t hubs_;
  PathNetwork inner_;
  std::vector<bool> serving_;  // by hub
  std::map<std::tuple<int64_t, int32_t, int32_t>, Span>
      waiting_;  // by instant of arrival, worker, hub
  int64_t instant_ = 0;
};

TEST(FirstComeNetworkTest, AgreesWithALookThroughAllThatWaits) {
  int ended = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 27});
    const testing::NetworkShape shape = testing::RandomShape(random, 20);
    testing::NetworkHistory history(seed, shape,
                                    FirstComeNetwork(shape.hubs, shape.capacities.size(),
                                                     MaxMinNetwork(shape.hubs, shape.capacities)),
                                    ObviousFirstCome(shape.hubs, shape.capacities));
    history.Live(200);
    if (HasFatalFailure()) return;
    ended += history.ended();
  }
  EXPECT_GT(ended, 20'000);
}

TEST(FirstComeNetworkTest, OverRoomyWorkerLinksAgreesWithALookThroughAllThatWaits) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 28});
    const testing::NetworkShape shape = testing::RoomyShape(random, 20);
    const size_t workers = shape.capacities.size();
    testing::NetworkHistory history(
        seed, shape, FirstComeNetwork(shape.hubs, workers, IndependentLinks(shape.hubs, workers)),
        ObviousFirstCome(shape.hubs, shape.capacities));
    history.Live(200);
    if (HasFatalFailure()) return;
  }
}

// One link and one chunk a worker: each begins when it has arrived and the one before it has ended.
TEST(FirstComeNetworkTest, OnOneLinkEveryChunkEndsItsWorkAfterTheLaterOfItsArrivalAndTheEndBefore) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 29});
    const size_t workers = 1 + random.Below(30);
    // Few instants, so that many arrive together and when others end.
    std::vector<std::tuple<int64_t, int32_t, int64_t>> arrivals;  // tick, worker, work
    for (size_t worker = 0; worker < workers; ++worker) {
      arrivals.emplace_back(random.Below(20), static_cast<int32_t>(worker), 1 + random.Below(3));
    }
    std::sort(arrivals.begin(), arrivals.end());
    Ends expected;
    int64_t free_at = 0;
    for (const auto& [at, worker, work] : arrivals) {
      free_at = std::max(free_at, at) + work;
      expected.emplace_back(free_at, worker);
    }
    FirstComeNetwork network(1, workers, EqualShareLink(workers));
    Ends ends;
    Instant next_end = kEndOfTime;
    for (auto next = arrivals.begin(); next != arrivals.end() || next_end < kEndOfTime;) {
      const Instant now =
          std::min(next_end, next == arrivals.end() ? kEndOfTime : Instant{std::get<0>(*next)});
      std::vector<int32_t> ended;
      if (now == next_end) network.TakeEnded(now, ended);
      for (const int32_t flow : ended) ends.emplace_back(now.ticks, flow);
      for (; next != arrivals.end() && std::get<0>(*next) == now.ticks; ++next)
        network.Start(std::get<1>(*next), Span{std::get<2>(*next)});
      next_end = network.Settle(now);
    }
    ASSERT_EQ(ends, expected);
  }
}

}  // namespace
}  // namespace stepcast::first_come_network_test
