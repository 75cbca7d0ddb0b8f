#include "core/replay/difference_constraints.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "core/base/index.h"

namespace stepcast {

namespace {

// True if b lies on or above the line from a to c.
bool IsImplied(const ClockOrder& a, const ClockOrder& b, const ClockOrder& c) {
  using Wide = __int128;
  return static_cast<Wide>(b.most() - a.most()) * (c.early_ns - a.early_ns) >=
         static_cast<Wide>(c.most() - a.most()) * (b.early_ns - a.early_ns);
}

}  // namespace

std::vector<ClockOrder> TightestOrders(std::vector<ClockOrder> orders) {
  std::sort(orders.begin(), orders.end(), [](const ClockOrder& a, const ClockOrder& b) {
    if (a.early_ns != b.early_ns) return a.early_ns < b.early_ns;
    return a.late_ns != b.late_ns ? a.late_ns < b.late_ns : a.source < b.source;
  });
  std::vector<ClockOrder> hull;
  for (const ClockOrder& order : orders) {
    if (!hull.empty() && hull.back().early_ns == order.early_ns) continue;
    while (hull.size() >= 2 && IsImplied(hull[hull.size() - 2], hull.back(), order))
      hull.pop_back();
    hull.push_back(order);
  }
  return hull;
}

double HeightAt(const std::vector<ClockOrder>& hull, double early_ns) {
  const auto after = std::find_if(hull.begin(), hull.end(), [&](const ClockOrder& order) {
    return static_cast<double>(order.early_ns) >= early_ns;
  });
  if (after == hull.begin()) return static_cast<double>(hull.front().most());
  if (after == hull.end()) return static_cast<double>(hull.back().most());
  const ClockOrder& left = *(after - 1);
  const double share = (early_ns - static_cast<double>(left.early_ns)) /
                       static_cast<double>(after->early_ns - left.early_ns);
  return static_cast<double>(left.most()) +
         share * static_cast<double>(after->most() - left.most());
}

DifferenceConstraints::DifferenceConstraints(int32_t variables)
    : variables_(variables), direct_(Index(variables) * Index(variables)) {
  for (int32_t above = 0; above < variables; ++above) {
    for (int32_t below = 0; below < variables; ++below)
      direct_[CellOf(above, below)] = {.above = above, .below = below};
  }
}

void DifferenceConstraints::Add(int32_t above, int32_t below, int64_t most, int64_t source) {
  assert(above != below && most >= -kMaxBound && most <= kMaxBound);
  Constraint& constraint = direct_[CellOf(above, below)];
  if (most >= constraint.most) return;
  constraint.most = most;
  constraint.source = source;
}

std::optional<DifferenceConstraints::Cycle> DifferenceConstraints::FindContradiction() const {
  // Bellman-Ford from a source that is 0 from every variable: an edge below -> above of length
  // `most`. What still becomes shorter in round `variables` hangs on a negative cycle.
  std::vector<int64_t> distance(Index(variables_), 0);
  std::vector<int32_t> before(Index(variables_), -1);  // by variable
  int32_t changed = -1;
  for (int32_t round = 0; round <= variables_; ++round) {
    changed = -1;
    for (const Constraint& constraint : direct_) {
      if (constraint.most == kUnbounded) continue;
      const int64_t through = distance[Index(constraint.below)] + constraint.most;
      if (through >= distance[Index(constraint.above)]) continue;
      distance[Index(constraint.above)] = through;
      before[Index(constraint.above)] = constraint.below;
      changed = constraint.above;
    }
    if (changed < 0) return std::nullopt;
  }
  for (int32_t i = 0; i < variables_; ++i) changed = before[Index(changed)];
  Cycle cycle;
  int32_t at = changed;
  do {
    const Constraint& constraint = Between(at, before[Index(at)]);
    cycle.constraints.push_back(constraint);
    cycle.excess -= constraint.most;
    at = before[Index(at)];
  } while (at != changed);
  return cycle;
}

std::vector<int64_t> DifferenceConstraints::TightestBounds() const {
  std::vector<int64_t> bounds(direct_.size(), kUnbounded);
  for (size_t i = 0; i < direct_.size(); ++i) bounds[i] = direct_[i].most;
  for (int32_t i = 0; i < variables_; ++i) bounds[CellOf(i, i)] = 0;
  for (int32_t between = 0; between < variables_; ++between) {
    for (int32_t above = 0; above < variables_; ++above) {
      const int64_t first = bounds[CellOf(above, between)];
      if (first == kUnbounded) continue;
      for (int32_t below = 0; below < variables_; ++below) {
        const int64_t second = bounds[CellOf(between, below)];
        if (second == kUnbounded) continue;
        int64_t& bound = bounds[CellOf(above, below)];
        bound = std::min(bound, first + second);
      }
    }
  }
  return bounds;
}

}  // namespace stepcast
