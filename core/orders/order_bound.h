// A time that no order of downloads can beat.
//
// Meaning: of the computations that wait, directly or through others, for a set of downloads, none
// begins before the whole set has travelled, and they are done one after the other; so no step is
// shorter than a set's transfers and the computations behind it. The greatest such sum over the
// sets of the graph is the bound. On a chain of layers it is the best makespan itself; with
// branches it may lie below. Threads: a pure function.
#pragma once

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/orders/transfer_graph.h"

namespace stepcast {

// With more groups (DependencyGroups) than this only the transfers are looked at.
inline constexpr int32_t kMaxGroupsToBound = 4096;

// All downloads on one link, one after the other, all computations on one processor. Cost: as
// DependencyGroups::Build, and O(groups x dependencies between them). Failure: what `stop` returns.
absl::StatusOr<Span> LeastMakespan(const TransferGraph& graph, StopCheck stop);

}  // namespace stepcast
