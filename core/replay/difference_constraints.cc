#include "core/replay/difference_constraints.h"

#include <algorithm>
#include <cassert>

#include "core/base/index.h"

namespace stepcast {

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
