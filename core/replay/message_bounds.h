// The orders between instants of two clocks, reduced to those that no other one implies.
//
// An order says that an instant of one clock was not after an instant of another one. All orders
// from clock i to clock j are points (x, y - x) that the line from one clock to the other has to
// stay below, so only those on the points' lower convex hull can bind.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

// Instant `early_ns` of one clock was not after instant `late_ns` of another.
struct ClockOrder {
  int64_t early_ns = 0;
  int64_t late_ns = 0;
  int64_t source = 0;

  int64_t most() const { return late_ns - early_ns; }
};

// Those on the lower convex hull, `early_ns` strictly ascending. REQUIRES: times are within 2^60.
// Cost: O(n log n).
std::vector<ClockOrder> TightestOrders(std::vector<ClockOrder> orders);

// The hull's height at an instant; beyond its ends that of the nearest end. REQUIRES:
// !hull.empty(), as TightestOrders returned it.
double HeightAt(const std::vector<ClockOrder>& hull, double early_ns);

}  // namespace stepcast
