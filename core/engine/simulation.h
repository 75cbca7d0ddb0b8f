// One run of the discrete-event simulation of a training job.
//
// Source: ICPE 2020, Algorithm 3.1, with the errata that core/README.md lists. Which engine runs is
// chosen per job; the plain one runs them all, and the faster ones agree with it to the tick.
// Threads: none. A run is a pure function of its arguments; any number may run at once. Cost:
// O(log(workers x lanes)) per chunk; with max-min sharing O(busy pairs) per change of their set.
// Memory: about 12 bytes an operation and worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/step_time_histogram.h"
#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/job_graph.h"
#include "core/engine/step_scaling.h"

namespace stepcast {

// The series of the instants at which steps of any worker ended, thinned to at most kMaxMarks.
//
// Mark i is the instant at which (i + 1) x stride steps had ended; the stride doubles whenever the
// marks are full, so a long run is described as evenly as a short one (the collapsing of batches of
// Yeh and Schmeiser's dynamic batch means).
// Threads: none.
class CompletionSeries {
 public:
  static constexpr size_t kMaxMarks = 2048;

  CompletionSeries() = default;
  // `stride`: the first one, at least 1. Where all workers end a step before any ends the next one,
  // their number: then no mark stands within a step, and tells only who was first.
  explicit CompletionSeries(int64_t stride) : stride_(stride) {}

  // So many steps end, the last of them now. REQUIRES: `now` is not before the last one; no mark
  // falls before the last of them.
  void Add(Instant now, int64_t count = 1) {
    since_mark_ += count;
    if (since_mark_ < stride_) return;
    since_mark_ = 0;
    marks_.push_back(now);
    if (marks_.size() < kMaxMarks) return;
    for (size_t i = 0; i < kMaxMarks / 2; ++i) marks_[i] = marks_[2 * i + 1];
    marks_.resize(kMaxMarks / 2);
    stride_ *= 2;
  }

  const std::vector<Instant>& marks() const { return marks_; }
  // Steps from one mark to the next.
  int64_t stride() const { return stride_; }

  friend bool operator==(const CompletionSeries&, const CompletionSeries&) = default;

 private:
  std::vector<Instant> marks_;
  int64_t stride_ = 1;
  int64_t since_mark_ = 0;
};

// A chunk that has run, for traces.
struct ChunkRecord {
  int32_t worker = 0;
  OpIndex op = 0;
  int32_t step = 0;  // of that worker, from 0
  // The part, from 0, of a transfer that is sent in several; the joint lane of a joint operation.
  int32_t service = 0;
  Instant start;
  Instant end;

  friend bool operator==(const ChunkRecord&, const ChunkRecord&) = default;
};

// The receiver of a run's chunks.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  // All chunks of a step that has just ended, in no promised order. Steps of one worker come in
  // their order.
  virtual void OnStep(std::span<const ChunkRecord> chunks) = 0;
};

// The engines: one event per chunk (plain), and two that leave only the network in the queue of
// events (see phased_run.h).
enum class EnginePath : uint8_t { kPlain, kWorkerLoop, kMemoised };
// "plain", "worker_loop", "memoised".
const char* NameOf(EnginePath path);

struct RunOptions {
  // Warm-up included; every worker goes on until each has completed so many.
  int32_t steps_per_worker = 1;
  int32_t warmup_steps = 0;
  // The end of the run, if earlier: it lasts exactly so long, whatever steps_per_worker says.
  Instant until = kEndOfTime;
  std::vector<Span> start_offsets;  // one a worker
  uint64_t seed = 1;
  uint64_t replication = 0;
  // Factors of what workers' processors and hosts compute; null: as recorded.
  std::shared_ptr<const StepScaling> scaling;
  bool keep_step_ends = false;
  TraceSink* trace = nullptr;                       // null: none
  EnginePath fastest_path = EnginePath::kMemoised;  // the fastest one that may be chosen
};

// The times at which one of a step's joint operations was ready on the last worker, began and
// ended, from the instant at which the last worker began the step; summed over a run's steps.
struct JointTimes {
  Span ready;
  Span begin;
  Span end;
  int64_t count = 0;

  friend bool operator==(const JointTimes&, const JointTimes&) = default;
};

struct RunResult {
  // The estimator: see core/README.md. 0 where measured is false.
  double steps_per_second = 0;
  // False where a worker has not completed two steps in the counted time.
  bool measured = false;
  Instant counted_from;
  Span counted;                               // length of the counted time
  StepTimeHistogram step_times;               // of the steps that ended in it
  std::vector<double> utilization;            // by lane, mean over workers; links: of the hub's
  double exposed_communication_fraction = 0;  // mean over workers
  // Share of a worker's time in which a joint operation of its own is ready, waits for other
  // workers, and it has nothing else to do; mean over workers.
  double waiting_fraction = 0;
  // The largest share of an iteration that its first finisher waited, where steps end together.
  double straggler_fraction = 0;
  // Completions over time in the counted time's first half; with the next one, tells drift.
  double first_half_steps_per_second = 0;
  double second_half_steps_per_second = 0;
  CompletionSeries completions;                 // of all steps, from the start of the run
  std::vector<JointTimes> joint_times;          // by position in JointWork, or by pair
  int64_t simulated_operations = 0;             // of the steps that ended
  EnginePath path = EnginePath::kPlain;         // that ran
  std::vector<std::vector<Instant>> step_ends;  // by worker, if kept
};

// The error of a run that would pass the end of simulated time.
absl::Status SimulatedTimeExhausted();

// Workers x operations that one run may hold; with cycles each joint one counts nine times, since
// it has a lane of its own.
inline constexpr int64_t kMaxWorkerOperations = 200'000'000;

// Failure: what `stop` returns; INVALID_ARGUMENT, reason SIMULATION_TOO_LARGE, over
// kMaxWorkerOperations; OUT_OF_RANGE, reason SIMULATED_TIME_EXHAUSTED, where the run, or one step
// of all workers one after the other, would pass the end of simulated time. REQUIRES: one start
// offset a worker; 0 <= warmup_steps < steps_per_worker; with kTurns one hub, a turn above 0, and
// no worker's link below the hub's.
absl::StatusOr<RunResult> Simulate(const JobGraph& job, const RunOptions& options, StopCheck stop);

}  // namespace stepcast
