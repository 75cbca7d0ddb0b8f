// The bounds of makespans: between which of them every schedule of one step lies, and where a given
// one lies between them.
//
// Source: TicTac (SysML 2019), section 3.2.
// Threads: plain functions.
#pragma once

#include <span>

#include "core/base/time.h"

namespace stepcast {

struct ScheduleBounds {
  Span upper;  // everything after one another (Eq. 1)
  Span lower;  // the busiest resource never idle (Eq. 2)

  // (upper - makespan) / (upper - lower): 1 is the best schedule thinkable, 0 the worst (Eq. 3). 1
  // where the bounds coincide.
  double Efficiency(Span makespan) const;
  // (upper - lower) / lower: the most that an order could speed a step up (Eq. 4). 0 where nothing
  // takes any time.
  double SpeedupBound() const;

  friend bool operator==(const ScheduleBounds&, const ScheduleBounds&) = default;
};

// From the sum of times of each resource's operations. REQUIRES: their sum is a valid Span.
ScheduleBounds BoundsOf(std::span<const Span> time_by_resource);

}  // namespace stepcast
