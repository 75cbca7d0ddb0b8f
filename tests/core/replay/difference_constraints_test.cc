#include "core/replay/difference_constraints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/index.h"
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

constexpr int64_t kNone = DifferenceConstraints::kUnbounded;

struct RandomSystem {
  int32_t variables = 0;
  std::vector<DifferenceConstraints::Constraint> all;
};

RandomSystem MakeSystem(uint64_t seed) {
  Random random({seed, 78});
  RandomSystem made{.variables = 2 + static_cast<int32_t>(random.Below(4))};
  const auto bound = static_cast<uint64_t>(made.variables);
  for (uint64_t i = random.Below(3 * bound); i > 0; --i) {
    const auto above = static_cast<int32_t>(random.Below(bound));
    const auto below = static_cast<int32_t>(random.Below(bound));
    if (above == below) continue;
    made.all.push_back({.above = above,
                        .below = below,
                        .most = static_cast<int64_t>(random.Below(21)) - 6,
                        .source = static_cast<int64_t>(made.all.size())});
  }
  return made;
}

// The least sum over all simple ways from `below` to `above`; to itself: over all simple cycles.
int64_t LeastByEnumeration(const RandomSystem& system, int32_t above, int32_t below) {
  int64_t least = kNone;
  std::vector<uint8_t> seen(Index(system.variables), 0);
  const std::function<void(int32_t, int64_t)> go = [&](int32_t at, int64_t sum) {
    for (const DifferenceConstraints::Constraint& constraint : system.all) {
      if (constraint.below != at) continue;
      if (constraint.above == above) least = std::min(least, sum + constraint.most);
      if (seen[Index(constraint.above)] != 0) continue;
      seen[Index(constraint.above)] = 1;
      go(constraint.above, sum + constraint.most);
      seen[Index(constraint.above)] = 0;
    }
  };
  seen[Index(below)] = 1;
  go(below, 0);
  return least;
}

TEST(DifferenceConstraintsTest, AgreesWithTryingEveryPathAndCycle) {
  int contradictory = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const RandomSystem made = MakeSystem(seed);
    DifferenceConstraints system(made.variables);
    for (const DifferenceConstraints::Constraint& constraint : made.all)
      system.Add(constraint.above, constraint.below, constraint.most, constraint.source);
    int64_t least_cycle = kNone;
    for (int32_t i = 0; i < made.variables; ++i)
      least_cycle = std::min(least_cycle, LeastByEnumeration(made, i, i));
    const auto cycle = system.FindContradiction();
    ASSERT_EQ(cycle.has_value(), least_cycle < 0);
    if (cycle.has_value()) {
      ++contradictory;
      int64_t sum = 0;
      for (size_t i = 0; i < cycle->constraints.size(); ++i) {
        const DifferenceConstraints::Constraint& constraint = cycle->constraints[i];
        EXPECT_EQ(constraint.below, cycle->constraints[(i + 1) % cycle->constraints.size()].above);
        EXPECT_EQ(made.all[static_cast<size_t>(constraint.source)].most, constraint.most);
        sum += constraint.most;
      }
      EXPECT_EQ(cycle->excess, -sum);
      EXPECT_GT(cycle->excess, 0);
      continue;
    }
    const std::vector<int64_t> bounds = system.TightestBounds();
    for (int32_t above = 0; above < made.variables; ++above) {
      for (int32_t below = 0; below < made.variables; ++below) {
        const int64_t expected = above == below ? 0 : LeastByEnumeration(made, above, below);
        EXPECT_EQ(bounds[Index(above) * Index(made.variables) + Index(below)], expected);
      }
    }
  }
  EXPECT_GT(contradictory, 200);
}

// Bounds as far from 0 as may be, all of them contradictory: no sum passes what holds it.
TEST(DifferenceConstraintsTest, HoldsTheFarthestBounds) {
  DifferenceConstraints system(DifferenceConstraints::kMaxVariables);
  for (int32_t above = 0; above < DifferenceConstraints::kMaxVariables; ++above) {
    for (int32_t below = 0; below < DifferenceConstraints::kMaxVariables; ++below) {
      if (above != below) system.Add(above, below, -DifferenceConstraints::kMaxBound, 1);
    }
  }
  const auto cycle = system.FindContradiction();
  ASSERT_TRUE(cycle.has_value());
  EXPECT_EQ(cycle->excess,
            static_cast<int64_t>(cycle->constraints.size()) * DifferenceConstraints::kMaxBound);
}

}  // namespace
}  // namespace stepcast
