// A bounded queue of jobs and the threads that run them. Knows nothing of prediction.
//
// A job runs at most once, and jobs are started in the order of submission. What the queue cannot take is refused at once, never blocked on.
// What only makes another job faster is a helper: it has the processor of a thread that would idle, and a thread of its own, so that no job ever
// waits for one. Threads: safe. Jobs of one pool run at the same time, on its threads. Lifetime: the destructor drains. Jobs must not outlive what
// they refer to. Failure: a thread that cannot be started is a broken start-up and ends the process. Jobs must not throw.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include "server/base/clock.h"

namespace stepcast::server {

// Told what the pool does; called on the pool's and on submitting threads, outside its lock. For metrics.
//
// Calls of different threads may overtake each other, so a gauge of the queue adds one OnQueued and subtracts one OnStarted;
// `queue_length` is what it was at that moment, good for a histogram or a log line.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void OnQueued(size_t queue_length) = 0;
  virtual void OnRefused() = 0;
  virtual void OnStarted(size_t queue_length, double wait_seconds) = 0;
  virtual void OnDone(double run_seconds) = 0;
};

struct JobPoolOptions {
  int threads = 2;        // REQUIRES: above 0
  size_t queue_max = 64;  // waiting jobs, those that run, or that an idle thread is about to take, not counted
  int helpers = 0;        // threads for SubmitIfIdle; 0: it takes nothing
  int retry_delay_ms = 500;
  JobObserver* observer = nullptr;  // borrowed; may be null
  const Clock* clock = nullptr;     // borrowed, for the seconds told to the observer; null: the real one
};

class JobPool {
 public:
  using Job = absl::AnyInvocable<void() &&>;

  explicit JobPool(const JobPoolOptions& options);
  ~JobPool();
  JobPool(const JobPool&) = delete;
  JobPool& operator=(const JobPool&) = delete;

  // RESOURCE_EXHAUSTED, reason QUEUE_FULL, with RetryInfo and quota subject, if the queue is full; UNAVAILABLE, reason SHUTTING_DOWN, after Drain
  // began. A refused job is destroyed without having run.
  absl::Status Submit(Job job);
  // Runs `helper` at once if jobs and helpers together are fewer than `threads`; else, or after Drain began, false, and it is destroyed without
  // having run. Takes no job's place in the queue, and the observer is told nothing of it.
  bool SubmitIfIdle(Job helper);
  // Whether a job would begin at once, on a processor that nothing else has.
  bool HasIdle() const;
  // Whether jobs and helpers together are more than `threads`: a helper that can end early should.
  bool IsCrowded() const;
  // Takes no more jobs, runs those it has, and returns when they and all helpers are done and destroyed. Idempotent. REQUIRES: not called by one of
  // them.
  void Drain();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace stepcast::server
