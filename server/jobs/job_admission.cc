#include "server/jobs/job_admission.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

constexpr double kUsableShare = 0.8;  // of the time left, for a job that waits
constexpr double kDoubt =
    4;  // how wrong an expectation may be before a job that need not wait is refused for it
constexpr int kMinRetryDelayMs = 100;
constexpr int kMaxRetryDelayMs = 60'000;

int RetryDelayMs(double seconds) {
  return static_cast<int>(
      std::clamp(seconds * 1e3, double{kMinRetryDelayMs}, double{kMaxRetryDelayMs}));
}

absl::Status Full(const PoolLoad& load, const char* limit, double value, const std::string& why) {
  const double left = load.queue_seconds > 0 ? 0.5 * load.queue_seconds : load.running_seconds;
  return MakeError(absl::StatusCode::kResourceExhausted,
                   absl::StrCat("the job queue is full: ", why),
                   {.reason = "QUEUE_FULL",
                    .metadata = {{limit, absl::StrCat(value)},
                                 {"queue_seconds", absl::StrCat(load.queue_seconds)}},
                    .retry_delay_ms = RetryDelayMs(left / static_cast<double>(load.threads)),
                    .quota_subject = limit});
}

}  // namespace

double ExpectedWaitSeconds(const PoolLoad& load) {
  if (load.unfinished < load.threads) return 0;
  return (load.running_seconds + load.ahead_seconds) / static_cast<double>(load.threads);
}

absl::Status QueueFull(const PoolLoad& load, const AdmissionLimits& limits,
                       const std::string& why) {
  return Full(load, limits.queue_max_name, static_cast<double>(limits.queue_max), why);
}

absl::Status CheckRoom(const JobTicket& ticket, const PoolLoad& load,
                       const AdmissionLimits& limits) {
  if (load.unfinished >= load.threads + limits.queue_max) {
    return QueueFull(load, limits, absl::StrCat(limits.queue_max_name, " is ", limits.queue_max));
  }
  const bool waits = load.unfinished >= load.threads;
  if (waits && limits.queue_seconds_max > 0 && load.queue_seconds > 0 &&
      load.queue_seconds + ticket.expected_seconds > limits.queue_seconds_max) {
    return Full(load, "queue_max_seconds", limits.queue_seconds_max,
                absl::StrCat(load.queue_seconds, " s of expected work are waiting, with ",
                             ticket.expected_seconds, " s more above queue_max_seconds, ",
                             limits.queue_seconds_max));
  }
  return absl::OkStatus();
}

absl::Status CheckDeadline(const JobTicket& ticket, const PoolLoad& load) {
  if (!ticket.deadline_ns) return absl::OkStatus();
  const double left = static_cast<double>(*ticket.deadline_ns - load.now_ns) * 1e-9;
  if (left <= 0) return absl::OkStatus();  // the job says so itself
  const double wait = ExpectedWaitSeconds(load);
  const double own = ticket.expected_seconds;
  const bool waits = wait > 0;
  if (waits ? wait + own <= kUsableShare * left : own <= kDoubt * left) return absl::OkStatus();
  const std::string message = absl::StrCat(
      "the deadline in ", left, " s cannot be met: an expected ", wait, " s of waiting and ", own,
      " s of computing", ticket.is_least ? " at least" : "");
  ErrorDetails details{.reason = "DEADLINE_UNREACHABLE",
                       .metadata = {{"seconds_left", absl::StrCat(left)},
                                    {"expected_wait_seconds", absl::StrCat(wait)},
                                    {"expected_seconds", absl::StrCat(own)}}};
  // Such a call is never let in, whatever waits.
  if (!waits || own > kDoubt * left)
    return MakeError(absl::StatusCode::kDeadlineExceeded, message, std::move(details));
  // By then a call with the same deadline would be let in, if nobody else came.
  details.retry_delay_ms = RetryDelayMs(wait + own - kUsableShare * left);
  return MakeError(absl::StatusCode::kResourceExhausted, message, std::move(details));
}

double CostModel::ExpectedSeconds(const Work& work) const {
  MutexLock lock(mutex_);
  auto at = by_key_.find(KeyOf(work));
  if (at == by_key_.end()) at = by_key_.find(work.group);
  return at == by_key_.end() ? 0 : at->second->second * work.size;
}

void CostModel::Observe(const Work& work, double seconds) {
  if (work.size <= 0) return;
  MutexLock lock(mutex_);
  Learn(KeyOf(work), seconds / work.size);
  Learn(work.group, seconds / work.size);
}

void CostModel::Learn(const std::string& key, double unit_seconds) {
  if (const auto at = by_key_.find(key); at != by_key_.end()) {
    at->second->second += kWeight * (unit_seconds - at->second->second);
    units_.splice(units_.begin(), units_, at->second);
    return;
  }
  units_.emplace_front(key, unit_seconds);
  by_key_[key] = units_.begin();
  if (units_.size() <= kMaxKinds) return;
  by_key_.erase(units_.back().first);
  units_.pop_back();
}

}  // namespace stepcast::server
