// Constraints on differences: between instants of two clocks, and of many unknowns.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace stepcast {

// The orders between instants of two clocks, reduced to those that no other one implies.
//
// An order says that an instant of one clock was not after an instant of another one. All orders
// from clock i to clock j are points (x, y - x) that the line from one clock to the other has to
// stay below, so only those on the points' lower convex hull can bind.

// Instant `early_ns` of one clock was not after instant `late_ns` of another.
struct ClockOrder {
  int64_t early_ns = 0;
  int64_t late_ns = 0;
  int64_t source = 0;

  int64_t most() const { return late_ns - early_ns; }
};

// The orders on the lower convex hull, `early_ns` strictly ascending. REQUIRES: times are within
// 2^60. Cost: O(n log n).
std::vector<ClockOrder> TightestOrders(std::vector<ClockOrder> orders);

// The hull's height at an instant; beyond its ends that of the nearest end. REQUIRES:
// !hull.empty(), as TightestOrders returned it.
double HeightAt(const std::vector<ClockOrder>& hull, double early_ns);

// A system of difference constraints x_i - x_j <= c in whole numbers: what it allows, or which of
// its constraints contradict each other.
//
// Source: Cormen et al., Introduction to Algorithms, 24.4 (Bellman-Ford) and 25.2 (Floyd-Warshall).
// Memory: 16 bytes a pair of variables. Threads: none; const members may be called at once.
class DifferenceConstraints {
 public:
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();
  // So many variables, and bounds no farther from 0: no sum that a search makes passes an int64.
  static constexpr int32_t kMaxVariables = 128;
  static constexpr int64_t kMaxBound = int64_t{1} << 46;

  // x_above - x_below is at most `most`; `source` is whatever the caller knows it by.
  struct Constraint {
    int32_t above = 0;
    int32_t below = 0;
    int64_t most = kUnbounded;
    int64_t source = -1;
  };
  // Constraints of which each one's `below` is the next one's `above`, the last one's the first
  // one's: the left sides cancel, and the right sides add up to -excess.
  struct Cycle {
    std::vector<Constraint> constraints;
    int64_t excess = 0;  // above 0
  };

  // REQUIRES: 0 <= variables <= kMaxVariables.
  explicit DifferenceConstraints(int32_t variables);

  // The tightest of several between two variables counts, of equal ones the first. REQUIRES: above
  // != below; most is within kMaxBound.
  void Add(int32_t above, int32_t below, int64_t most, int64_t source);
  // The tightest that was added; kUnbounded: none was.
  const Constraint& Between(int32_t above, int32_t below) const {
    return direct_[CellOf(above, below)];
  }
  // A contradiction; none: some x satisfies all. Cost: O(variables x pairs).
  std::optional<Cycle> FindContradiction() const;
  // The bounds that all together imply: element above * variables + below is the least of x_above -
  // x_below, and some x reaches it; kUnbounded: there is none. REQUIRES: !FindContradiction().
  // Cost: O(variables^3).
  std::vector<int64_t> TightestBounds() const;

 private:
  size_t CellOf(int32_t above, int32_t below) const {
    return static_cast<size_t>(above) * static_cast<size_t>(variables_) +
           static_cast<size_t>(below);
  }

  int32_t variables_;
  std::vector<Constraint> direct_;  // by pair
};

}  // namespace stepcast
