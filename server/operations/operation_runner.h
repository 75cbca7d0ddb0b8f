// The runner of long-running operations, and the thread that ticks for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/jobs/cancellation.h"
#include "server/jobs/job_pool.h"
#include "server/store/operation_store.h"

namespace stepcast::server {

// A thread that calls a function again and again: when it is woken, and after as long as the
// function said.
//
// Threads: Wake is safe; Start and Stop belong to one thread. Lifetime: the destructor stops.
class Ticker {
 public:
  Ticker() = default;
  ~Ticker() { Stop(); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Calls `tick`, which returns after how many nanoseconds it is to be called again at the latest.
  // REQUIRES: called once, before Stop.
  void Start(std::function<int64_t()> tick);
  // One more call begins soon; many wakings before it are one.
  void Wake();
  // Returns when the call that runs is over; there will be none any more. Idempotent.
  void Stop();

 private:
  void Run(const std::function<int64_t()>& tick);

  Mutex mutex_;
  CondVar woken_;
  bool wake_ STEPCAST_GUARDED_BY(mutex_) = false;
  bool stop_ STEPCAST_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// The whole that an attempt is part of: a computation that this replica makes alone, or one whose
// parts it shares with others.
struct OperationShare {
  std::string operation;
  ShardStore* shards = nullptr;  // null: it makes it alone
  bool helps = false;            // another replica has the operation, and brings its end
};

// The progress of an attempt. Threads: safe.
struct AttemptProgress {
  std::atomic<int64_t> done{0};
  std::atomic<int64_t> expected{0};
};

// The rest of a request that has been checked: gives the bytes of its response, and says meanwhile
// how far it is.
using OperationWork =
    absl::AnyInvocable<absl::StatusOr<std::string>(StopCheck stop, AttemptProgress& progress,
                                                   const OperationShare& share) &&>;

// An observer of attempts. For metrics.
// Threads: that of Tick.
class OperationObserver {
 public:
  virtual ~OperationObserver() = default;
  virtual void OnAttempt() = 0;
  // `outcome` is one of kAttemptOutcomes.
  virtual void OnAttemptEnd(std::string_view outcome) = 0;
};

// lost: another has it, or it was deleted. released: for another to take. retried: it met what may
// pass, and is begun again when its lease has run out. helped: it was another replica's.
inline constexpr std::string_view kAttemptOutcomes[] = {"succeeded", "failed",  "cancelled", "lost",
                                                        "released",  "retried", "helped"};

struct OperationRunnerOptions {
  std::string replica;  // no other replica on the store has this name
  int max_running = 1;  // at one time, and helps with as many; 0: takes none
  int64_t lease_ns = int64_t{15} * 1'000'000'000;  // renewed at a third
  int64_t patience_ns = int64_t{10} * 1'000'000'000;
  int64_t help_again_ns = int64_t{10} * 1'000'000'000;  // after help has ended
  int64_t poll_ns =
      500'000'000;  // between questions to the store for what other replicas have queued
  int64_t expire_every_ns = int64_t{60} * 1'000'000'000;
};

struct OperationRunnerEnvironment {
  OperationStore& store;
  ShardStore* shards;  // null: no other replica is on the store
  JobPool& checking;
  JobPool& computing;  // of nothing else: a computation may take hours
  const Clock& clock;
  OperationObserver& observer;
  std::function<bool()> has_capacity;
  std::function<absl::StatusOr<OperationWork>(const std::string& request)>
      check;                                                    // on its pool; may block
  std::function<std::string(const absl::Status&)> error_bytes;  // an error as it is kept
  std::function<void()> wake;   // there is something for Tick to do. Any thread
  std::function<void()> ended;  // some operation is done. The thread of Tick
};

// A worker for long-running operations: takes them from the store when this replica has capacity,
// computes them, keeps their leases, and brings back what came of them.
//
// Work is checked on one pool, computed on another, and the store is only ever called by Tick: a
// slow store holds none of their threads. Calls go first: an operation is taken when a thread for
// computing is idle; only one that is due longer than the patience says is taken all the same. A
// replica that dies is known by its lease: another begins anew. One that leaves gives back what it
// has, for another to take at once. With nothing to take, a replica helps with an operation that
// another has, as long as that has shards nobody has taken. Threads: Tick is called by one thread
// at a time; the rest is safe. Lifetime: borrows all it is given, and outlives its jobs once
// HasLeft.
class OperationRunner {
 public:
  OperationRunner(const OperationRunnerOptions& options, OperationRunnerEnvironment environment);
  OperationRunner(const OperationRunner&) = delete;
  OperationRunner& operator=(const OperationRunner&) = delete;

  // Does what is due, and returns after how many nanoseconds to call it again at the latest.
  int64_t Tick();

  // Asks the store about all that runs at the next Tick, because something may have been cancelled.
  void BeatSoon();
  // Takes no more, and stops what runs; later Ticks give it back.
  void Leave();
  // True if Leave was called and nothing runs any more.
  bool HasLeft() const;
  // REQUIRES: Leave was called, and another thread goes on calling Tick.
  void WaitUntilLeft();

 private:
  // One attempt of this replica. Shared with its job.
  struct Attempt {
    Attempt(OperationAttempt taken, bool helping, const Clock& clock)
        : key(std::move(taken)), helps(helping), stop(clock) {}

    const OperationAttempt key;
    const bool helps;  // the number is none then
    Cancellation stop;
    AttemptProgress progress;
    bool is_refused = false;  // by a pool: it has not been computed
    std::optional<absl::StatusOr<std::string>>
        outcome;  // written by the job before it puts the attempt into ended_, then only by Tick
    bool is_ended = false;  // this and the rest: only by Tick
    bool is_leaving = false;
    int64_t next_beat_ns = 0;
  };
  using AttemptPointer = std::shared_ptr<Attempt>;

  // True if it is to leave.
  bool CollectNews();
  void Beat(Attempt& attempt, int64_t now_ns);
  absl::StatusOr<HeartbeatAnswer> BeatOf(Attempt& attempt);
  // True if it is settled: nothing is left to be done for it.
  bool Settle(Attempt& attempt);
  bool SettleFinished(Attempt& attempt);
  void StopAll();
  void TakeWhatFits(int64_t now_ns);
  bool MayTake(int64_t now_ns);
  // Operations that this replica has, or helps with.
  int Count(bool helps) const;
  // False: there is none.
  bool TakeOne(int64_t now_ns);
  void HelpOne(int64_t now_ns);
  void Begin(const AttemptPointer& attempt, std::string request);
  void Compute(const AttemptPointer& attempt, OperationWork work);
  void Refuse(const AttemptPointer& attempt);
  void End(const AttemptPointer& attempt);
  void Expire(int64_t now_ns);
  int64_t UntilNext(int64_t now_ns) const;

  const OperationRunnerOptions options_;
  const OperationRunnerEnvironment environment_;
  std::vector<AttemptPointer> running_;  // this and the next three: only by Tick
  std::map<std::string, int64_t>
      helped_;  // operations that were, and until when they are not again
  int64_t last_taken_ns_;
  int64_t next_expiry_ns_;
  mutable Mutex mutex_;
  CondVar left_;
  std::vector<AttemptPointer> ended_ STEPCAST_GUARDED_BY(mutex_);  // whose jobs are over
  bool leaving_ STEPCAST_GUARDED_BY(mutex_) = false;
  bool has_left_ STEPCAST_GUARDED_BY(mutex_) = false;
  bool beat_soon_ STEPCAST_GUARDED_BY(mutex_) = false;
};

}  // namespace stepcast::server
