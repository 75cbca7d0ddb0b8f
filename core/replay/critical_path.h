// The critical path of an execution through all of its workers, and each worker's share of it.
//
// Source: dPRO (MLSys 2022, sections 4.3 and 5): the longest path of the execution graph, whose
// edges are dependencies, the order on each lane, and meetings of workers.
//
// The path goes backwards from the operation that ended last to that which it waited for the
// longest, so its segments follow each other without a hole: gaps are segments, too. At a meeting
// it goes on with the worker that came last; what that one computed while all others were waiting
// already is kWaiting, the time that is lost to it being the slowest. Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/replay/execution.h"

namespace stepcast {

struct PathSegment {
  PathKind kind = PathKind::kComputation;
  int32_t worker = -1;           // -1: all of them, of a collective
  ExecutedIndex operation = -1;  // -1: a gap
  Instant begin;
  Instant end;

  Span length() const { return end - begin; }
};

// Time by PathKind.
using TimeByKind = std::array<Span, kPathKinds>;
inline Span& Of(TimeByKind& times, PathKind kind) { return times[static_cast<size_t>(kind)]; }
inline Span Of(const TimeByKind& times, PathKind kind) { return times[static_cast<size_t>(kind)]; }
Span Total(const TimeByKind& times);

struct WorkerShare {
  // The worker's own time, from the begin to the end of its counted steps, exactly: it computes;
  // else a server or a transfer works for it, or a collective; else it waits for other workers at a
  // meeting; else nothing.
  TimeByKind own{};
  Span on_path;     // of the critical path, that is on this worker alone
  Span waited_for;  // of that, while all others waited for it
};

struct CriticalPath {
  std::vector<PathSegment> segments;  // from `begin` to `end`, each one begins where one ends
  Instant begin;                      // the first worker's begin of its counted steps
  Instant end;                        // the last worker's end of them
  TimeByKind by_kind{};               // of the segments; they add up to end - begin
  std::vector<WorkerShare> workers;
  // The worker that the others wait for: at least a hundredth of the path, and at least twice as
  // long as for any other; -1: there is none.
  int32_t straggler = -1;

  Span length() const { return end - begin; }
};

// Cost: O(n log n) in operations. Failure: what `stop` returns. REQUIRES: operations, at least one
// step counted.
absl::StatusOr<CriticalPath> FindCriticalPath(const Execution& execution, StopCheck stop);

}  // namespace stepcast
