#include "core/network/independent_links.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "core/network/max_min_network.h"
#include "core/network/path_network.h"
#include "tests/core/network/network_history.h"

namespace stepcast::independent_links_test {
namespace {

TEST(IndependentLinksTest, AWorkerTakesFromAllHubsAtFullSpeed) {
  IndependentLinks links(2, 2);
  links.Start(0, Span{100});  // worker 0, hub 0
  links.Start(1, Span{100});  // worker 0, hub 1
  links.Start(3, Span{70});   // worker 1, hub 1
  EXPECT_EQ(links.Settle(Instant{0}), Instant{100});
  std::vector<int32_t> ended;
  links.TakeEnded(Instant{100}, ended);
  EXPECT_EQ(ended, std::vector<int32_t>{0});
  EXPECT_EQ(links.Settle(Instant{100}), Instant{140});
  EXPECT_EQ(links.CarriedBy(Instant{120}, 0), 100);
  EXPECT_EQ(links.CarriedBy(Instant{120}, 1), 120);
}

TEST(IndependentLinksTest, AgreeWithThePathNetworkToTheTick) {
  int ended = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 25});
    const testing::NetworkShape shape = testing::RoomyShape(random, 24);
    testing::NetworkHistory history(seed, shape,
                                    IndependentLinks(shape.hubs, shape.capacities.size()),
                                    PathNetwork::Star(shape.hubs, shape.capacities));
    history.Live(200);
    if (HasFatalFailure()) return;
    ended += history.ended();
  }
  EXPECT_GT(ended, 20'000);
}

TEST(IndependentLinksTest, AgreeWithMaxMinToTheTick) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 26});
    const testing::NetworkShape shape = testing::RoomyShape(random, 200);
    testing::NetworkHistory history(seed, shape,
                                    IndependentLinks(shape.hubs, shape.capacities.size()),
                                    MaxMinNetwork(shape.hubs, shape.capacities));
    history.Live(300);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace stepcast::independent_links_test
