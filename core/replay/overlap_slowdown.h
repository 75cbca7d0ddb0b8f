// The factor by which computation takes longer beside a collective, told from an execution.
//
// An operation that runs at times alone and at times beside a collective tells it: the same work,
// both ways. A run is of one kind or the other where the collectives are or are not there for as
// long as the longest run of the operation would have taken: by its begin, then, for how long a run
// took must not choose its kind. All others are left out.
//
// Compared are logarithms, as the least squares of an effect of each operation of each worker, one
// of each step of each worker, and that of a collective beside. So neither a large operation nor a
// slow worker counts as slowed, nor does a step in which a worker is slow, comes last, and has the
// collective beside it at once while the others ran alone until then. The interval is the one that
// errors which all runs of a step share leave right (cluster-robust: Liang and Zeger, 1986; steps
// are the clusters), with Student's t. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/predict/throughput.h"
#include "core/replay/execution.h"

namespace stepcast {

struct OverlapSlowdown {
  // The time beside a collective over the time alone, operations weighted by how long they take.
  // Chance may bring it below 1.
  double slowdown = 1;
  Interval interval;
  int32_t operations = 0;  // of a worker each, that ran both ways
  int64_t runs_alone = 0;  // of these
  int64_t runs_beside = 0;
};

// Steps with such runs that it takes to tell an interval.
inline constexpr int32_t kMinOverlapSteps = 5;

// Of the computation of all counted steps; none: fewer than kMinOverlapSteps of them have runs that
// tell it. Cost: O(n log n) in operations. Failure: what `stop` returns.
absl::StatusOr<std::optional<OverlapSlowdown>> FindOverlapSlowdown(const Execution& execution,
                                                                   StopCheck stop);

}  // namespace stepcast
