// A cancellation token with a deadline: shared by whoever may end the work for one request and by
// the job that does it.
//
// Stops for the first of: Cancel, and the deadline. Once stopped it stays stopped.
// Cost: Check is one atomic load, and one clock reading if there is a deadline; it takes a lock
// only after Cancel.
// Threads: safe.
// Lifetime: usually held by shared_ptr from both sides. The clock must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"

#include "core/base/error.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"

namespace stepcast::server {

class Cancellation {
 public:
  // `deadline_ns` is on the clock's monotonic time; none: no deadline.
  explicit Cancellation(const Clock& clock, std::optional<int64_t> deadline_ns = std::nullopt)
      : clock_(clock), deadline_ns_(deadline_ns.value_or(kNoDeadline)) {}
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  // From now on Check returns CANCELLED, reason CANCELLED.
  void Cancel() { Cancel(absl::OkStatus()); }
  // From now on Check returns `why`, or what Cancel() gives if it is OK. The first call of either
  // counts, later ones do nothing.
  void Cancel(absl::Status why) {
    if (why.ok())
      why = MakeError(absl::StatusCode::kCancelled, "the request was cancelled",
                      {.reason = "CANCELLED"});
    MutexLock lock(mutex_);
    if (!why_.ok()) return;
    why_ = std::move(why);
    cancelled_.store(true, std::memory_order_release);
  }

  // OK: go on. What Cancel said, or DEADLINE_EXCEEDED, reason DEADLINE_EXCEEDED, from the deadline
  // on.
  absl::Status Check() const {
    if (cancelled_.load(std::memory_order_acquire)) {
      MutexLock lock(mutex_);
      return why_;
    }
    if (deadline_ns_ == kNoDeadline || clock_.MonotonicNs() < deadline_ns_) return absl::OkStatus();
    return MakeError(absl::StatusCode::kDeadlineExceeded, "the request's deadline has passed",
                     {.reason = "DEADLINE_EXCEEDED"});
  }

 private:
  static constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

  const Clock& clock_;
  const int64_t deadline_ns_;
  std::atomic<bool> cancelled_{false};
  mutable Mutex mutex_;
  absl::Status why_ STEPCAST_GUARDED_BY(mutex_);
};

}  // namespace stepcast::server
