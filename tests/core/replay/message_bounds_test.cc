#include "core/replay/message_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/random.h"

namespace stepcast {
namespace {

// Any line is below all orders if and only if it is below those that are kept.
TEST(MessageBoundsTest, WhatIsLeftOutBindsNoLine) {
  int left_out = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 79});
    std::vector<ClockOrder> orders;
    for (uint64_t i = 1 + random.Below(30); i > 0; --i) {
      const auto early = static_cast<int64_t>(random.Below(40));
      orders.push_back({.early_ns = early,
                        .late_ns = early + static_cast<int64_t>(random.Below(30)) - 5,
                        .source = static_cast<int64_t>(i)});
    }
    const std::vector<ClockOrder> kept = TightestOrders(orders);
    left_out += static_cast<int>(orders.size() - kept.size());
    const auto least_room = [](const std::vector<ClockOrder>& of, int64_t slope) {
      int64_t room = INT64_MAX;
      for (const ClockOrder& order : of)
        room = std::min(room, 8 * order.most() - slope * order.early_ns);
      return room;
    };
    for (int64_t slope = -200; slope <= 200; ++slope)
      ASSERT_EQ(least_room(kept, slope), least_room(orders, slope)) << "slope " << slope;
    for (size_t i = 1; i < kept.size(); ++i) EXPECT_LT(kept[i - 1].early_ns, kept[i].early_ns);
    for (const ClockOrder& order : orders) {
      EXPECT_LE(HeightAt(kept, static_cast<double>(order.early_ns)),
                static_cast<double>(order.most()) + 1e-9);
    }
  }
  EXPECT_GT(left_out, 3000);
}

}  // namespace
}  // namespace stepcast
