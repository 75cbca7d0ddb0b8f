// One run of the discrete-event simulation of a training job.
//
// Source: ICPE 2020, Algorithm 3.1, with the errata that core/README.md lists, and section 5 for several servers.
// This is the plain engine: it runs every graph and is what faster paths must agree with to the tick.
// Threads: none. A run is a pure function of its arguments; any number may run at once.
// Cost: O(log(workers x lanes)) per chunk; with max-min sharing O(busy pairs) per change of their set. Memory: about 12 bytes an operation and
// worker.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/step_graph.h"
#include "core/engine/step_time_histogram.h"
#include "core/model/scenario.h"

namespace stepcast {

// A chunk that has run, for traces.
struct ChunkRecord {
  int32_t worker = 0;
  OpIndex op = 0;
  int32_t step = 0;     // of that worker, from 0
  bool second = false;  // the second service of a split transfer
  Instant start;
  Instant end;

  friend bool operator==(const ChunkRecord&, const ChunkRecord&) = default;
};

struct RunOptions {
  int32_t steps_per_worker = 1;  // warm-up included; every worker goes on until each has completed so many
  int32_t warmup_steps = 0;
  Synchronization synchronization = Synchronization::kAsynchronous;
  std::vector<Span> start_offsets;              // one a worker
  std::vector<WorkerGroup> worker_groups;       // empty: all alike
  double bandwidth_bytes_per_second = 0;        // of the servers' links; what groups' own bandwidths are compared with
  TransferOrder order = TransferOrder::kGraph;  // kGraph, kRecorded, kRandom, or any other with ranks
  std::vector<int32_t> ranks;                   // by OpIndex, kUnranked where there is none; empty with the three named above
  bool replay = false;                          // recorded steps one after the other, not sampled
  uint64_t seed = 1;
  uint64_t replication = 0;
  bool keep_step_ends = false;
  std::vector<ChunkRecord>* trace = nullptr;  // appended to; null: none
  size_t trace_max = 0;                       // stop appending there

  static constexpr int32_t kUnranked = INT32_MAX;
};

struct RunResult {
  // The estimator: see core/README.md. 0 where measured is false.
  double steps_per_second = 0;
  // False where a worker has not completed two steps in the counted time.
  bool measured = false;
  Span counted;                               // length of the counted time
  StepTimeHistogram step_times;               // of the steps that ended in it
  std::vector<double> utilization;            // by lane, mean over workers; connections: of the server's link
  double exposed_communication_fraction = 0;  // mean over workers
  double straggler_fraction = 0;              // synchronous: largest share of an iteration that its first finisher waited
  double first_half_steps_per_second = 0;     // of the counted time, completions over time; with the next one, tells drift
  double second_half_steps_per_second = 0;
  int64_t simulated_operations = 0;
  std::vector<std::vector<Instant>> step_ends;  // by worker, if kept; in memory only
};

// The error of a run that would pass the end of simulated time.
absl::Status SimulatedTimeExhausted();

// Workers x operations that one run may hold.
inline constexpr int64_t kMaxWorkerOperations = 200'000'000;

// Failure: what `stop` returns; INVALID_ARGUMENT, reason SIMULATION_TOO_LARGE, over kMaxWorkerOperations; OUT_OF_RANGE, reason
// SIMULATED_TIME_EXHAUSTED, where the run, or one step of all workers one after the other, would pass the end of simulated time. REQUIRES: one start
// offset a worker; 0 <= warmup_steps < steps_per_worker; ranks as described.
absl::StatusOr<RunResult> Simulate(const StepGraph& graph, const RunOptions& options, StopCheck stop);

}  // namespace stepcast
