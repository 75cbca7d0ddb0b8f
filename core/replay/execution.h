// An execution of a job: the operations that ran on all workers, when, and what each of them waited
// for; the global graph of dPRO (MLSys 2022, section 4.1) with its times.
//
// It is made of a simulation's trace here; what is computed of it (critical_path.h) does not ask
// where it came from. Memory: about 60 bytes an operation. Threads: immutable once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/index.h"
#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"

namespace stepcast {

// The kinds of work, and of time without any.
enum class PathKind : uint8_t {
  kComputation,    // on a worker, its host included
  kServer,         // on a processor at the far end of links
  kCommunication,  // a transfer or a collective
  kWaiting,        // computation of one worker while all others of a meeting wait for it
  kGap,            // nothing that was recorded
};
inline constexpr size_t kPathKinds = 5;
// "COMPUTATION".
const char* NameOf(PathKind kind);

// An index of Execution::operations.
using ExecutedIndex = int32_t;

struct ExecutedOperation {
  int32_t worker = 0;
  OpIndex op = 0;
  int32_t step = 0;
  int32_t service = 0;                     // as in ChunkRecord
  PathKind kind = PathKind::kComputation;  // one of the first three
  bool is_joint = false;                   // one of all workers, which each have it
  bool is_gathered = false;                // its meeting is of what it waits for besides
  int32_t meeting = -1;                    // of Execution::meetings, that it waits for; -1: none
  Instant start;
  Instant end;
};

// A worker at a meeting: it was there when that operation of its own had ended.
struct Arrival {
  int32_t worker = 0;
  ExecutedIndex operation = -1;  // -1: from the start
  Instant at;
};

struct Execution {
  int32_t workers = 0;
  int32_t steps = 0;                 // of each worker
  int32_t warmup = 0;                // of them, not counted
  int64_t simulated_operations = 0;  // by the engine, to the end of the run
  std::vector<ExecutedOperation> operations;
  // The operations that each one waited for besides its meeting: predecessors[first_predecessor[i]]
  // up to those of i + 1.
  std::vector<size_t> first_predecessor;
  std::vector<ExecutedIndex> predecessors;
  std::vector<std::vector<Arrival>> meetings;
  // By worker: when its counted steps began and ended.
  std::vector<Instant> begins;
  std::vector<Instant> ends;

  std::span<const ExecutedIndex> predecessors_of(ExecutedIndex operation) const {
    const ExecutedIndex* const all = predecessors.data();
    return {all + first_predecessor[Index(operation)],
            all + first_predecessor[Index(operation) + 1]};
  }
};

// An execution may have so many operations, each of which takes about 100 bytes.
inline constexpr int64_t kMaxExecutedOperations = 5'000'000;
inline constexpr char kExecutionTooLarge[] = "EXECUTION_TOO_LARGE";

// Every worker's first steps, `warmup` of them not counted: runs the job on the plain engine
// with `options`, whose fastest_path is set here; their trace, if any, is told of every step, too.
//
// Failure: as Simulate; INVALID_ARGUMENT, reason kExecutionTooLarge, at `workers`, over
// kMaxExecutedOperations.
absl::StatusOr<Execution> Execute(const JobGraph& job, RunOptions options, StopCheck stop);

}  // namespace stepcast
