// A bounded queue of jobs and the threads that run them. Knows nothing of prediction.
//
// A job is called exactly once: with OK to run, or, while it waits, with the reason why it never
// will. Clients take turns (FairQueue); jobs of one client are started in the order of submission.
// Jobs that it cannot take are refused at once, never blocked on. A job that waits is looked at
// every 10 ms: one that nobody waits for any more, or whose time is over, leaves. In a full queue a
// client with few jobs waiting takes the place of the newest one of the client with the most. What
// only makes another job faster is a helper: it has the processor of a thread that would idle, and
// a thread of its own, so that no job ever waits for one. Threads: safe. Jobs of one pool run at
// the same time, on its threads. Lifetime: the destructor drains. Jobs must not outlive what they
// refer to. Failure: a thread that cannot be started is a broken start-up and ends the process.
// Jobs must not throw.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include "server/base/clock.h"
#include "server/jobs/job_admission.h"

namespace stepcast::server {

// An observer of a pool. For metrics.
//
// Called on the pool's and on submitting threads, outside its lock.
// Calls of different threads may overtake each other, so a gauge of the queue adds one OnQueued and
// subtracts one OnStarted; `queue_length` is what it was at that moment, good for a histogram or a
// log line.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void OnQueued(size_t queue_length) = 0;
  virtual void OnRefused() = 0;
  // One that was queued was refused after all.
  virtual void OnDropped() = 0;
  virtual void OnStarted(size_t queue_length, double wait_seconds) = 0;
  virtual void OnDone(double run_seconds) = 0;
};

struct JobPoolOptions {
  int threads = 2;  // REQUIRES: above 0
  size_t queue_max =
      64;  // waiting jobs, those that run, or that an idle thread is about to take, not counted
  double queue_seconds_max = 0;              // of their expected work, on one thread; 0: no bound
  const char* queue_max_name = "queue_max";  // of the setting, for errors
  int helpers = 0;                           // threads for SubmitIfIdle; 0: it takes nothing
  int nice = 0;  // by how much its threads yield to others of the process, as nice(1)
  JobObserver* observer = nullptr;  // borrowed; may be null
  const Clock* clock =
      nullptr;  // borrowed, for the seconds told to the observer; null: the real one
};

class JobPool {
 public:
  using Job = absl::AnyInvocable<void(const absl::Status&) &&>;
  using Helper = absl::AnyInvocable<void() &&>;
  // True if nobody waits for a job any more, who has then been told why. Asked outside every lock
  // of the pool, by any thread, also of a job that has just begun.
  using IsAbandoned = std::function<bool()>;

  explicit JobPool(const JobPoolOptions& options);
  ~JobPool();
  JobPool(const JobPool&) = delete;
  JobPool& operator=(const JobPool&) = delete;

  // RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED as CheckRoom and CheckDeadline say; UNAVAILABLE, reason
  // SHUTTING_DOWN, after Drain began. A job refused here is destroyed without having been called.
  absl::Status Submit(JobTicket ticket, Job job, IsAbandoned is_abandoned = nullptr);
  // Submit's answer to a job with that ticket, without a job: what it would be refused with now, so
  // that nobody has to make it. The observer is told of a refusal.
  absl::Status Refusal(const JobTicket& ticket);
  // For jobs of which nothing is known: of one client, without a deadline.
  absl::Status Submit(Helper job);
  // Runs `helper` at once if jobs and helpers together are fewer than `threads`; else, or after
  // Drain began, false, and it is destroyed without having run. Takes no job's place in the queue,
  // and the observer is told nothing of it.
  bool SubmitIfIdle(Helper helper);
  // True if a job would begin at once, on a processor that nothing else has.
  bool HasIdle() const;
  // True if jobs and helpers together are more than `threads`: a helper that can end early should.
  bool IsCrowded() const;
  // Limits like those of the options, for jobs that come from now on.
  void SetLimits(size_t queue_max, double queue_seconds_max);
  // The jobs that wait and run, the oldest first.
  std::vector<JobListing> List() const;
  // Takes no more jobs, runs those it has, and returns when they and all helpers are done and
  // destroyed. Idempotent. REQUIRES: not called by one of them.
  void Drain();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace stepcast::server
