// A bounded queue of jobs and the threads that run them. Knows nothing of prediction.
//
// A job runs at most once, in the order of submission. What the queue cannot take is refused at once, never blocked on.
// Threads: safe. Jobs of one pool run at the same time, on its threads.
// Lifetime: the destructor drains. Jobs must not outlive what they refer to.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace stepcast::server {

// Told what the pool does; called on the pool's and on submitting threads, outside its lock. For metrics.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void OnQueued(size_t queue_length) = 0;
  virtual void OnRefused() = 0;
  virtual void OnStarted(size_t queue_length, double wait_seconds) = 0;
  virtual void OnDone(double run_seconds) = 0;
};

struct JobPoolOptions {
  int threads = 2;
  size_t queue_max = 64;  // waiting jobs, those that run not counted
  int retry_delay_ms = 500;
  JobObserver* observer = nullptr;  // borrowed; may be null
};

class JobPool {
 public:
  using Job = absl::AnyInvocable<void() &&>;

  explicit JobPool(const JobPoolOptions& options);
  ~JobPool();
  JobPool(const JobPool&) = delete;
  JobPool& operator=(const JobPool&) = delete;

  // RESOURCE_EXHAUSTED, reason QUEUE_FULL, with RetryInfo and quota subject, if the queue is full; UNAVAILABLE, reason SHUTTING_DOWN, after Drain began.
  // A refused job is destroyed without having run.
  absl::Status Submit(Job job);
  // Takes no more jobs, runs those it has, and returns when they are done. Idempotent.
  void Drain();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace stepcast::server
