#include "server/operations/operation_runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/store/disk.h"

namespace stepcast::server {

void Ticker::Start(std::function<int64_t()> tick) {
  thread_ = std::thread([this, tick = std::move(tick)] { Run(tick); });
}

void Ticker::Wake() {
  MutexLock lock(mutex_);
  wake_ = true;
  woken_.NotifyOne();
}

void Ticker::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    woken_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void Ticker::Run(const std::function<int64_t()>& tick) {
  while (true) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(tick());
    MutexLock lock(mutex_);
    for (auto now = std::chrono::steady_clock::now(); !wake_ && !stop_ && now < end;
         now = std::chrono::steady_clock::now()) {
      woken_.WaitFor(mutex_, end - now);
    }
    if (stop_) return;
    wake_ = false;
  }
}

namespace {

absl::Status LostError() {
  return MakeError(absl::StatusCode::kAborted, "another replica has the operation",
                   {.reason = "OPERATION_LOST"});
}

absl::Status LeavingError() {
  return MakeError(absl::StatusCode::kUnavailable, "the server is shutting down",
                   {.reason = "SHUTTING_DOWN"});
}

// True of a store that may take the same later.
bool IsAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || IsDiskFull(status);
}

bool IsLost(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsNotFound(status);
}

}  // namespace

OperationRunner::OperationRunner(const OperationRunnerOptions& options,
                                 OperationRunnerEnvironment environment)
    : options_(options),
      environment_(std::move(environment)),
      last_taken_ns_(environment_.clock.MonotonicNs()),
      next_expiry_ns_(environment_.clock.MonotonicNs()) {}

int64_t OperationRunner::Tick() {
  const int64_t now_ns = environment_.clock.MonotonicNs();
  const bool is_leaving = CollectNews();
  const size_t before = running_.size();
  std::erase_if(running_, [this](const AttemptPointer& attempt) {
    return attempt->is_ended && Settle(*attempt);
  });
  if (running_.size() < before) environment_.ended();
  for (const AttemptPointer& attempt : running_) {
    if (attempt->next_beat_ns <= now_ns) Beat(*attempt, now_ns);
  }
  if (is_leaving) {
    StopAll();
  } else {
    TakeWhatFits(now_ns);
    if (next_expiry_ns_ <= now_ns) Expire(now_ns);
  }
  if (is_leaving && running_.empty()) {
    MutexLock lock(mutex_);
    has_left_ = true;
    left_.NotifyAll();
  }
  return UntilNext(now_ns);
}

void OperationRunner::BeatSoon() {
  {
    MutexLock lock(mutex_);
    beat_soon_ = true;
  }
  environment_.wake();
}

void OperationRunner::Leave() {
  {
    MutexLock lock(mutex_);
    leaving_ = true;
  }
  environment_.wake();
}

bool OperationRunner::HasLeft() const {
  MutexLock lock(mutex_);
  return has_left_;
}

void OperationRunner::WaitUntilLeft() {
  MutexLock lock(mutex_);
  while (!has_left_) left_.Wait(mutex_);
}

bool OperationRunner::CollectNews() {
  std::vector<AttemptPointer> ended;
  bool beat_soon = false;
  bool is_leaving = false;
  {
    MutexLock lock(mutex_);
    ended.swap(ended_);
    beat_soon = std::exchange(beat_soon_, false);
    is_leaving = leaving_;
  }
  for (const AttemptPointer& attempt : ended) attempt->is_ended = true;
  if (beat_soon) {
    for (const AttemptPointer& attempt : running_)
      attempt->next_beat_ns = environment_.clock.MonotonicNs();
  }
  return is_leaving;
}

void OperationRunner::Beat(Attempt& attempt, int64_t now_ns) {
  const absl::StatusOr<HeartbeatAnswer> answer = BeatOf(attempt);
  // While the store is away nobody else can take it either, so the work goes on; and if somebody
  // has, the next answer says so.
  attempt.next_beat_ns =
      now_ns + (answer.ok() && !attempt.helps ? options_.lease_ns / 3 : options_.poll_ns);
  if (!answer.ok() || *answer == HeartbeatAnswer::kGoOn) return;
  if (*answer == HeartbeatAnswer::kCancelled) {
    attempt.stop.Cancel();
  } else {
    attempt.stop.Cancel(LostError());
  }
}

absl::StatusOr<HeartbeatAnswer> OperationRunner::BeatOf(Attempt& attempt) {
  if (!attempt.helps) {
    return environment_.store.Heartbeat(
        attempt.key, {.done = attempt.progress.done, .expected = attempt.progress.expected},
        options_.lease_ns);
  }
  const absl::StatusOr<StoredOperation> operation = environment_.store.Get(attempt.key.id);
  if (absl::IsNotFound(operation.status())) return HeartbeatAnswer::kLost;
  if (!operation.ok()) return operation.status();
  const bool runs = operation->record.state == OperationState::kRunning;
  return runs && !operation->record.cancel_requested ? HeartbeatAnswer::kGoOn
                                                     : HeartbeatAnswer::kLost;
}

bool OperationRunner::Settle(Attempt& attempt) {
  if (attempt.helps) {
    helped_[attempt.key.id] = environment_.clock.MonotonicNs() + options_.help_again_ns;
    environment_.observer.OnAttemptEnd("helped");
    return true;
  }
  if (!attempt.is_refused && (attempt.outcome->ok() || !attempt.is_leaving))
    return SettleFinished(attempt);
  const absl::Status released = environment_.store.Release(attempt.key);
  environment_.observer.OnAttemptEnd(IsLost(released) ? "lost" : "released");
  // If the store is away, the lease will run out.
  return true;
}

bool OperationRunner::SettleFinished(Attempt& attempt) {
  const absl::StatusOr<std::string>& outcome = *attempt.outcome;
  if (absl::IsUnavailable(outcome.status())) {
    environment_.observer.OnAttemptEnd("retried");
    return true;
  }
  const absl::Status finished = environment_.store.Finish(
      attempt.key,
      {.is_error = !outcome.ok(),
       .bytes = outcome.ok() ? *outcome : environment_.error_bytes(outcome.status()),
       .progress = {.done = attempt.progress.done, .expected = attempt.progress.expected}});
  // Kept until the store is back, or has room, or somebody else has it.
  if (IsAway(finished) && !attempt.is_leaving) return false;
  if (finished.ok()) {
    environment_.observer.OnAttemptEnd(outcome.ok()                          ? "succeeded"
                                       : absl::IsCancelled(outcome.status()) ? "cancelled"
                                                                             : "failed");
    return true;
  }
  if (outcome.ok() && !IsLost(finished) && !IsAway(finished)) {
    // The store does not take the result, for its size for instance: that is the end then.
    attempt.outcome = finished;
    return SettleFinished(attempt);
  }
  environment_.observer.OnAttemptEnd("lost");
  return true;
}

void OperationRunner::StopAll() {
  for (const AttemptPointer& attempt : running_) {
    attempt->is_leaving = true;
    attempt->stop.Cancel(LeavingError());
  }
}

void OperationRunner::TakeWhatFits(int64_t now_ns) {
  while (MayTake(now_ns) && TakeOne(now_ns)) {
  }
  if (environment_.shards != nullptr && Count(true) < options_.max_running &&
      environment_.has_capacity())
    HelpOne(now_ns);
}

int OperationRunner::Count(bool helps) const {
  return static_cast<int>(
      std::count_if(running_.begin(), running_.end(),
                    [&](const AttemptPointer& attempt) { return attempt->helps == helps; }));
}

bool OperationRunner::MayTake(int64_t now_ns) {
  if (Count(false) >= options_.max_running) return false;
  if (environment_.has_capacity()) return true;
  return Count(false) == 0 && now_ns - last_taken_ns_ >= options_.patience_ns;
}

bool OperationRunner::TakeOne(int64_t now_ns) {
  absl::StatusOr<std::optional<ClaimedOperation>> claimed =
      environment_.store.Claim({.replica = options_.replica, .lease_ns = options_.lease_ns});
  if (!claimed.ok() || !claimed->has_value()) return false;
  ClaimedOperation& operation = **claimed;
  last_taken_ns_ = now_ns;
  environment_.observer.OnAttempt();
  const auto attempt =
      std::make_shared<Attempt>(OperationAttempt{.id = operation.record.id,
                                                 .replica = options_.replica,
                                                 .number = operation.record.attempts},
                                /*helping=*/false, environment_.clock);
  attempt->next_beat_ns = now_ns + options_.lease_ns / 3;
  // Who has it need not help with it.
  for (const AttemptPointer& other : running_)
    if (other->key.id == attempt->key.id) other->stop.Cancel(LostError());
  running_.push_back(attempt);
  Begin(attempt, std::move(operation.request));
  return true;
}

void OperationRunner::HelpOne(int64_t now_ns) {
  std::erase_if(helped_, [&](const auto& helped) { return helped.second <= now_ns; });
  std::vector<std::string_view> but;
  for (const AttemptPointer& attempt : running_) but.push_back(attempt->key.id);
  for (const auto& [id, until_ns] : helped_) but.push_back(id);
  absl::StatusOr<std::optional<ShardStore::Shared>> shared =
      environment_.shards->FindToHelp(options_.replica, but);
  if (!shared.ok() || !shared->has_value()) return;
  const auto attempt = std::make_shared<Attempt>(
      OperationAttempt{.id = (*shared)->operation, .replica = options_.replica},
      /*helping=*/true, environment_.clock);
  attempt->next_beat_ns = now_ns + options_.poll_ns;
  environment_.observer.OnAttempt();
  running_.push_back(attempt);
  Begin(attempt, std::move((*shared)->request));
}

void OperationRunner::Begin(const AttemptPointer& attempt, std::string request) {
  const absl::Status submitted =
      environment_.checking.Submit([this, attempt, request = std::move(request)] {
        absl::StatusOr<OperationWork> work = environment_.check(request);
        if (work.ok()) return Compute(attempt, *std::move(work));
        attempt->outcome = work.status();
        End(attempt);
      });
  if (!submitted.ok()) Refuse(attempt);
}

void OperationRunner::Compute(const AttemptPointer& attempt, OperationWork work) {
  // All operations together take turns with each of the clients that call.
  JobTicket ticket{.client = "operations",
                   .method = "StartJob",
                   .request_id = absl::StrCat("operations/", attempt->key.id)};
  const absl::Status submitted = environment_.computing.Submit(
      std::move(ticket),
      [this, attempt, work = std::move(work)](const absl::Status& taken) mutable {
        if (!taken.ok()) return Refuse(attempt);
        const absl::Status go_on = attempt->stop.Check();
        if (go_on.ok()) {
          attempt->outcome =
              std::move(work)([&] { return attempt->stop.Check(); }, attempt->progress,
                              {.operation = attempt->key.id,
                               .shards = environment_.shards,
                               .helps = attempt->helps});
        } else {
          attempt->outcome = go_on;
        }
        work = nullptr;
        End(attempt);
      });
  if (!submitted.ok()) Refuse(attempt);
}

void OperationRunner::Refuse(const AttemptPointer& attempt) {
  attempt->is_refused = true;
  End(attempt);
}

void OperationRunner::End(const AttemptPointer& attempt) {
  {
    MutexLock lock(mutex_);
    ended_.push_back(attempt);
  }
  environment_.wake();
}

void OperationRunner::Expire(int64_t now_ns) {
  next_expiry_ns_ = now_ns + options_.expire_every_ns;
  // Operations that are not deleted now are the next time.
  environment_.store.Expire().status().IgnoreError();
}

int64_t OperationRunner::UntilNext(int64_t now_ns) const {
  int64_t next_ns = now_ns + options_.poll_ns;
  for (const AttemptPointer& attempt : running_) next_ns = std::min(next_ns, attempt->next_beat_ns);
  return std::max<int64_t>(0, next_ns - now_ns);
}

}  // namespace stepcast::server
