// Bounds of the time that a step takes: for every schedule of it, and for every order of downloads.
//
// Threads: pure functions.
#pragma once

#include <span>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/orders/transfer_graph.h"

namespace stepcast {

// The bounds of makespans: between which of them every schedule of one step lies, and where a given
// one lies between them.
//
// Source: TicTac (SysML 2019), section 3.2.
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

// With more groups (DependencyGroups) than this only the transfers are looked at.
inline constexpr int32_t kMaxGroupsToBound = 4096;

// A time that no order of downloads can beat.
//
// Meaning: of the computations that wait, directly or through others, for a set of downloads, none
// begins before the whole set has travelled, and they are done one after the other; so no step is
// shorter than a set's transfers and the computations behind it. The greatest such sum over the
// sets of the graph is the bound. On a chain of layers it is the best makespan itself; with
// branches it may lie below.
// All downloads on one link, one after the other, all computations on one processor. Cost: as
// DependencyGroups::Build, and O(groups x dependencies between them). Failure: what `stop` returns.
absl::StatusOr<Span> LeastMakespan(const TransferGraph& graph, StopCheck stop);

}  // namespace stepcast
