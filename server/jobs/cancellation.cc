#include "server/jobs/cancellation.h"

#include <limits>
#include <utility>

#include "core/base/error.h"

namespace stepcast::server {

namespace {

constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

}  // namespace

Cancellation::Cancellation(const Clock& clock, std::optional<int64_t> deadline_ns)
    : clock_(clock), deadline_ns_(deadline_ns.value_or(kNoDeadline)) {}

void Cancellation::Cancel() { Cancel(absl::OkStatus()); }

void Cancellation::Cancel(absl::Status why) {
  if (why.ok())
    why = MakeError(absl::StatusCode::kCancelled, "the request was cancelled",
                    {.reason = "CANCELLED"});
  MutexLock lock(mutex_);
  if (!why_.ok()) return;
  why_ = std::move(why);
  cancelled_.store(true, std::memory_order_release);
}

absl::Status Cancellation::Check() const {
  if (cancelled_.load(std::memory_order_acquire)) {
    MutexLock lock(mutex_);
    return why_;
  }
  if (deadline_ns_ == kNoDeadline || clock_.MonotonicNs() < deadline_ns_) return absl::OkStatus();
  return MakeError(absl::StatusCode::kDeadlineExceeded, "the request's deadline has passed",
                   {.reason = "DEADLINE_EXCEEDED"});
}

}  // namespace stepcast::server
