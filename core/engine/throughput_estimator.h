// The throughput estimator of a run: steps per second over its counted time.
//
// The counted time goes from the instant at which the last worker ends its warm-up to the instant
// at which the last worker ends its last required step, both included.
// Each worker's rate is the number of its completions after its first one inside, over the time
// from its first to its last one inside; the answer is their sum.
// Without warm-up a worker's start counts as a completion.
// A run that lasts until an instant of its own is counted from its origin to there: the answer is
// the number of all completions over that time.
// Source: ICPE 2020, 4.1, made precise.
// Memory: some numbers a worker, whatever the number of steps.
// Threads: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/step_time_histogram.h"
#include "core/base/time.h"

namespace stepcast {

class ThroughputEstimator {
 public:
  // `until`: kEndOfTime for a run that ends with its required steps.
  ThroughputEstimator(int32_t workers, int32_t warmup_steps, int32_t steps_per_worker,
                      Instant until = kEndOfTime)
      : warmup_(warmup_steps),
        middle_((warmup_steps + steps_per_worker) / 2),
        required_(steps_per_worker),
        until_(until),
        workers_(static_cast<size_t>(workers)),
        worker_count_(workers_.size()),
        begun_(until < kEndOfTime) {}

  // The worker's first step begins.
  void OnStart(int32_t worker, Instant now) { Note(worker, 0, now); }
  void OnStepEnd(int32_t worker, Instant begin, Instant now);

  // True if the next step is no worker's last of warm-up, of the first half or of all. REQUIRES:
  // all workers have ended as many steps.
  bool IsPlainRound() const {
    const int64_t next = workers_.front().steps + 1;
    return next != warmup_ && next != middle_ && next != required_;
  }
  // Every worker ends a step. REQUIRES: IsPlainRound(); one begin and one end a worker.
  void OnRoundEnd(std::span<const Instant> begins, std::span<const Instant> ends);

  // Call when all of an instant has happened. True at the one instant at which the counted time
  // begins.
  bool BeginsAt(Instant now) { return !(begun_ && middle_passed_) && EnterPhase(now); }
  // True once every worker has its steps.
  bool Done() const { return done_count_ == worker_count_; }

  // False where a worker has not two completions inside (until an instant: where none has one):
  // then there is no answer.
  bool measured() const;
  double StepsPerSecond() const;
  // Completions of all workers over time, in the two halves of the counted time (up to and after
  // the last worker's middle step).
  double FirstHalfStepsPerSecond() const;
  double SecondHalfStepsPerSecond(Instant end) const;
  Instant begin() const { return begin_; }
  const StepTimeHistogram& step_times() const { return step_times_; }

 private:
  struct Worker {
    int64_t steps = 0;
    Instant first;  // inside
    Instant last;
    int64_t inside = 0;
  };

  void Note(int32_t worker, int64_t steps, Instant now);
  // Enters the counted time, or its second half, if it begins now; true for the counted time.
  bool EnterPhase(Instant now);

  const int64_t warmup_;
  const int64_t middle_;
  const int64_t required_;
  const Instant until_;
  std::vector<Worker> workers_;
  const size_t worker_count_;
  size_t warm_count_ = 0;
  size_t middle_count_ = 0;
  size_t done_count_ = 0;
  bool begun_ = false;
  bool middle_passed_ = false;
  Instant begin_;
  Instant middle_at_;
  int64_t first_half_ = 0;
  int64_t second_half_ = 0;
  StepTimeHistogram step_times_;
};

}  // namespace stepcast
