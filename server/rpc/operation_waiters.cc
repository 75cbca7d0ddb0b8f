#include "server/rpc/operation_waiters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/convert/operation_convert.h"

namespace stepcast::server {

namespace {

constexpr int64_t kNothingToDoNs = int64_t{3600} * 1'000'000'000;

absl::Status TooMany(int64_t max_waiting) {
  return MakeError(absl::StatusCode::kResourceExhausted,
                   absl::StrCat(max_waiting, " calls wait for operations already"),
                   {.reason = "TOO_MANY_WAITING",
                    .metadata = {{"max_waiting_calls", absl::StrCat(max_waiting)}},
                    .retry_delay_ms = kRetryDelayMs,
                    .quota_subject = "max_waiting_calls"});
}

absl::Status ShuttingDown() {
  return MakeError(absl::StatusCode::kUnavailable, "the server is shutting down",
                   {.reason = "SHUTTING_DOWN", .retry_delay_ms = kRetryDelayMs});
}

}  // namespace

void OperationWaiters::Wait(UnaryCall& call, const std::string& name, double seconds) {
  const int64_t until_ns = clock_.MonotonicNs() + static_cast<int64_t>(seconds * kNsPerSecond);
  absl::Status refused;
  {
    MutexLock lock(mutex_);
    if (leaving_) {
      refused = ShuttingDown();
    } else if (count_ >= max_waiting_) {
      refused = TooMany(max_waiting_);
    } else {
      waiting_[name].push_back({.call = &call, .until_ns = until_ns});
      ++count_;
    }
  }
  if (!refused.ok()) call.Fail(refused);
}

void OperationWaiters::FreePlace() {
  MutexLock lock(mutex_);
  --count_;
}

void OperationWaiters::Look(const std::string& name, std::vector<Waiting>& waiting) {
  const absl::StatusOr<StoredOperation> operation = handler_.Get(name);
  // A store that is away for a moment ends nobody's waiting before its time.
  const bool is_away = absl::IsUnavailable(operation.status());
  const bool is_done = is_away ? false : !operation.ok() || IsDone(operation->record.state);
  const int64_t now_ns = clock_.MonotonicNs();
  std::erase_if(waiting, [&](const Waiting& each) {
    const absl::Status go_on = each.call->Check();
    if (go_on.ok() && !is_done && now_ns < each.until_ns) return false;
    FreePlace();
    if (!go_on.ok()) {
      each.call->Fail(go_on);
    } else if (operation.ok()) {
      each.call->Reply(ToWire(*operation));
    } else {
      each.call->Fail(operation.status());
    }
    return true;
  });
}

int64_t OperationWaiters::Tick() {
  Waitings taken;
  bool is_leaving = false;
  {
    MutexLock lock(mutex_);
    taken.swap(waiting_);
    is_leaving = leaving_;
  }
  bool is_left = false;
  int64_t next_ns = clock_.MonotonicNs() + kPollNs;
  for (auto& [name, waiting] : taken) {
    if (is_leaving) {
      for (const Waiting& each : waiting) {
        FreePlace();
        each.call->Fail(ShuttingDown());
      }
      waiting.clear();
      continue;
    }
    Look(name, waiting);
    is_left = is_left || !waiting.empty();
    for (const Waiting& each : waiting) next_ns = std::min(next_ns, each.until_ns);
  }
  // Those that came meanwhile have woken the next Tick.
  MutexLock lock(mutex_);
  for (auto& [name, waiting] : taken) {
    if (!waiting.empty())
      waiting_[name].insert(waiting_[name].end(), waiting.begin(), waiting.end());
  }
  return !is_left ? kNothingToDoNs : std::max<int64_t>(0, next_ns - clock_.MonotonicNs());
}

void OperationWaiters::Leave() {
  MutexLock lock(mutex_);
  leaving_ = true;
}

}  // namespace stepcast::server
