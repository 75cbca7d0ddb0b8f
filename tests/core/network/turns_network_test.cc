#include "core/network/turns_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "core/network/link_level.h"
#include "core/network/network.h"
#include "core/network/turns_link.h"

namespace stepcast::turns_network_test {
namespace {

constexpr int64_t kUnit = LinkLevel::kUnit;
static_assert(Network<TurnsNetwork>);

// Flows that left a first link, and that arrived: tick, flow.
struct Ends {
  std::vector<std::pair<int64_t, int32_t>> left;
  std::vector<std::pair<int64_t, int32_t>> arrived;

  friend bool operator==(const Ends&, const Ends&) = default;
};

// Runs the network until nothing is left.
Ends RunOut(TurnsNetwork& network, Instant next) {
  Ends ends;
  std::vector<int32_t> flows;
  while (next < kEndOfTime) {
    flows.clear();
    network.TakeEnded(next, flows);
    for (const int32_t flow : flows) ends.left.emplace_back(next.ticks, flow);
    flows.clear();
    network.TakeDelivered(next, flows);
    for (const int32_t flow : flows) ends.arrived.emplace_back(next.ticks, flow);
    next = network.Settle(next);
  }
  return ends;
}

TEST(TurnsNetworkTest, TwoHubsSendAtOnceAndTheirWorkersLinkTakesThemInTurns) {
  TurnsNetwork network({.hubs = 2, .turn = Span{10}}, {kUnit, kUnit});
  network.Start(0, Span{20});  // worker 0, hub 0
  network.Start(1, Span{15});  // worker 0, hub 1
  // Its own link: 0: 10-20, 30-40; 1: 20-30, 40-45.
  EXPECT_EQ(RunOut(network, network.Settle(Instant{0})),
            (Ends{.left = {{15, 1}, {20, 0}}, .arrived = {{40, 0}, {45, 1}}}));
  EXPECT_EQ(network.CarriedBy(Instant{45}, 0), 20);
  EXPECT_EQ(network.CarriedBy(Instant{45}, 1), 15);
}

TEST(TurnsNetworkTest, AHubServesOthersWhileASlowLinkIsBehind) {
  TurnsNetwork network({.hubs = 1, .turn = Span{10}}, {kUnit / 2, kUnit});
  network.Start(0, Span{20});
  network.Start(1, Span{10});
  // The hub: 0: 0-10, 20-30; 1: 10-20, which its own link does not hold up. Worker 0's own: 10-30,
  // 30-50.
  EXPECT_EQ(RunOut(network, network.Settle(Instant{0})),
            (Ends{.left = {{20, 1}, {30, 0}}, .arrived = {{20, 1}, {50, 0}}}));
}

TEST(TurnsNetworkTest, UploadsCrossTheirWorkersLinkFirst) {
  TurnsNetwork network({.hubs = 1, .turn = Span{10}, .from_workers = true}, {kUnit / 2, kUnit});
  network.Start(0, Span{20});
  network.Start(1, Span{25});
  // Worker 0's own link: 0-20, 20-40. The hub: 1: 0-10, 10-20; 0, new at 20: 20-30; 1: 30-35; 0:
  // 40-50.
  EXPECT_EQ(RunOut(network, network.Settle(Instant{0})),
            (Ends{.left = {{35, 1}, {40, 0}}, .arrived = {{35, 1}, {50, 0}}}));
}

TEST(TurnsNetworkTest, GapsBetweenPiecesMakeNoNewcomer) {
  // Three hubs feed worker 0; hub 1 serves two others as well, so its pieces come with gaps.
  TurnsNetwork network({.hubs = 3, .turn = Span{10}}, {kUnit, 3 * kUnit, 3 * kUnit});
  network.Start(0, Span{40});
  network.Start(1, Span{20});
  network.Start(2, Span{20});
  network.Start(4, Span{20});  // worker 1, hub 1
  network.Start(7, Span{20});  // worker 2, hub 1
  // Hub 1: 1, 4 and 7, then 1 again: 30-40. Worker 0's own link: 0: 10-20, 1: 20-30, 2: 30-40. At
  // 40 hub 0 comes next, since hub 1's second piece goes behind it: 50-60.
  Ends ends = RunOut(network, network.Settle(Instant{0}));
  std::sort(ends.arrived.begin(), ends.arrived.end());
  EXPECT_EQ(ends.arrived, (std::vector<std::pair<int64_t, int32_t>>{
                              {50, 4}, {60, 1}, {60, 7}, {70, 2}, {90, 0}}));
}

// Four workers whose short chunks follow each other, each idle at the hub for an instant only, have
// more to send than it can take, and are newcomers there every time.
TEST(TurnsNetworkTest, ALongChunkIsNotStarvedByShortOnes) {
  constexpr int32_t kLong = 4;
  constexpr int64_t kPieces = 20;
  TurnsNetwork network({.hubs = 1, .turn = Span{10}, .from_workers = true},
                       std::vector<int64_t>(5, kUnit / 2));
  for (int32_t flow = 0; flow < kLong; ++flow) network.Start(flow, Span{10});
  network.Start(kLong, Span{10 * kPieces});
  Instant now = network.Settle(Instant{0});
  std::vector<int32_t> ended;
  std::vector<int32_t> delivered;
  while (std::find(delivered.begin(), delivered.end(), kLong) == delivered.end()) {
    // Each of its pieces waits for as many others as the hub has flows, and a turn under way.
    ASSERT_LE(now.ticks, 10 * (5 + 2) * kPieces);
    ended.clear();
    delivered.clear();
    network.TakeEnded(now, ended);
    network.TakeDelivered(now, delivered);
    for (const int32_t flow : delivered)
      if (flow != kLong) network.Start(flow, Span{10});
    now = network.Settle(now);
  }
  EXPECT_GT(now.ticks, 10 * 5 * (kPieces - 2)) << "the others were not served in between";
}

// A hub is a TurnsLink where no worker's own link binds.
TEST(TurnsNetworkTest, LinksThatNeverBindAreNotCrossed) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 62});
    const size_t workers = 1 + random.Below(6);
    const Span turn{1 + static_cast<int64_t>(random.Below(200))};
    TurnsNetwork network({.hubs = 1, .turn = turn, .from_workers = random.Below(2) == 0},
                         std::vector<int64_t>(workers, kUnit));
    TurnsLink link(workers, turn);
    std::vector<bool> busy(workers);
    Instant now;
    Instant network_next = kEndOfTime;
    Instant link_next = kEndOfTime;
    for (int instant = 0; instant < 300; ++instant) {
      std::vector<int32_t> ended;
      std::vector<int32_t> delivered;
      std::vector<int32_t> of_link;
      if (now == network_next) {
        network.TakeEnded(now, ended);
        network.TakeDelivered(now, delivered);
      }
      if (now == link_next) link.TakeEnded(now, of_link);
      ASSERT_EQ(ended, of_link) << "at " << now.ticks;
      ASSERT_EQ(delivered, of_link) << "at " << now.ticks;
      for (const int32_t flow : ended) busy[static_cast<size_t>(flow)] = false;
      for (size_t flow = 0; flow < workers; ++flow) {
        if (busy[flow] || random.Below(4) != 0) continue;
        busy[flow] = true;
        const Span work{1 + static_cast<int64_t>(random.Below(900))};
        network.Start(static_cast<int32_t>(flow), work);
        link.Start(static_cast<int32_t>(flow), work);
      }
      network_next = network.Settle(now);
      link_next = link.Settle(now);
      ASSERT_EQ(network.CarriedBy(now, 0), link.CarriedBy(now));
      const Instant later = now + Span{1 + static_cast<int64_t>(random.Below(500))};
      now = std::min({later, network_next, link_next});
    }
  }
}

}  // namespace
}  // namespace stepcast::turns_network_test
