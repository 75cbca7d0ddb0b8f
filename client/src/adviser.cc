#include "stepcast/adviser.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/src/advice_request.h"
#include "client/src/connection.h"
#include "client/src/error_status.h"
#include "client/src/remote_connection.h"
#include "client/src/retry.h"
#include "client/src/stub.h"

namespace stepcast::client {

namespace {

using std::chrono::nanoseconds;

// A profile that is missing now may be there soon.
constexpr nanoseconds kKeepRefusals = std::chrono::seconds(5);

// A doubtful answer may be a better one soon.
constexpr nanoseconds kKeepDoubts = std::chrono::seconds(30);

constexpr size_t kMaxFailure = 200;

// A breaker of calls: closed, open, or half-open with one call that tries.
class Breaker {
 public:
  Breaker(int failures, nanoseconds open_for)
      : limit_(std::max(failures, 1)), open_for_(open_for) {}

  bool IsOpen() const { return failures_ >= limit_; }

  // True where a call may be made.
  bool Allows(Adviser::Time now) const { return !IsOpen() || (now >= until_ && !trying_); }

  // The same of a call that begins; End follows.
  bool Begin(Adviser::Time now) {
    if (!Allows(now)) return false;
    trying_ = IsOpen();
    return true;
  }

  void End(Adviser::Time now, bool failed) {
    trying_ = false;
    failures_ = failed ? std::min(failures_ + 1, limit_) : 0;
    until_ = now + open_for_;
  }

 private:
  const int limit_;
  const nanoseconds open_for_;
  int failures_ = 0;  // in a row
  Adviser::Time until_{};
  bool trying_ = false;
};

// True of what the server said of the question, and would say again.
bool IsAboutQuestion(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

absl::Status NoAnswer(absl::StatusCode code, std::string_view reason, std::string_view message) {
  return MakeLocalError(code, reason, message);
}

absl::Status Stopping() {
  return NoAnswer(absl::StatusCode::kCancelled, "ADVISER_STOPPED", "the adviser is being stopped");
}

}  // namespace

class Adviser::Impl {
 public:
  Impl(std::shared_ptr<Connection> connection, const AdviserOptions& options, Clock clock)
      : connection_(std::move(connection)),
        options_(options),
        clock_(std::move(clock)),
        breaker_(options.failures, options.open_for) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    asked_.notify_all();
    answered_.notify_all();
    connection_->CancelCalls();
    for (std::thread& thread : threads_) thread.join();
  }

  absl::StatusOr<Advice> Advise(const AdviceQuestion& question) {
    if (absl::Status wrong = CheckAdviceQuestion(question); !wrong.ok()) return wrong;
    const std::string key = KeyOf(question);
    std::unique_lock lock(mutex_);
    ++counters_.questions;
    const std::shared_ptr<Entry> entry = Remember(key, question);
    entry->used = ++uses_;
    if (entry->answer.has_value() && clock_() < entry->until) {
      ++counters_.from_memory;
      return *entry->answer;
    }
    if (!entry->is_pending) {
      if (absl::Status refused = Ask(entry); !refused.ok()) return refused;
    }
    const int64_t round = entry->rounds;
    const auto is_done = [&] { return stopping_ || entry->rounds != round; };
    if (idle_waits_ < std::max(options_.failures, 1))
      answered_.wait_for(lock, std::max(options_.wait, nanoseconds(0)), is_done);
    if (entry->rounds != round) return *entry->last;
    if (stopping_) return Stopping();
    ++counters_.too_late;
    idle_waits_ = std::min(idle_waits_ + 1, std::max(options_.failures, 1));
    return NoAnswer(absl::StatusCode::kDeadlineExceeded, "ADVICE_NOT_YET",
                    "no answer yet; the question is being asked, so ask again");
  }

  AdviserCounters counters() const {
    const std::lock_guard lock(mutex_);
    AdviserCounters counters = counters_;
    counters.is_open = breaker_.IsOpen();
    return counters;
  }

 private:
  // One question. Guarded by mutex_, but for `question`, which never changes.
  struct Entry {
    AdviceQuestion question;
    bool is_pending = false;                       // queued or being asked
    int64_t rounds = 0;                            // times that asking came to an end
    std::optional<absl::StatusOr<Advice>> answer;  // stands until `until`
    std::optional<absl::StatusOr<Advice>> last;    // of the last round
    Time until{};
    int64_t used = 0;
  };

  // The entry of a question, new where there is none; mutex_ is held.
  std::shared_ptr<Entry> Remember(const std::string& key, const AdviceQuestion& question) {
    if (const auto found = entries_.find(key); found != entries_.end()) return found->second;
    if (entries_.size() >= std::max<size_t>(options_.max_questions, 1)) {
      // Far fewer than a call takes of instructions. One that is being asked is kept by who asks.
      entries_.erase(std::min_element(
          entries_.begin(), entries_.end(),
          [](const auto& a, const auto& b) { return a.second->used < b.second->used; }));
    }
    auto entry = std::make_shared<Entry>();
    entry->question = question;
    entries_.emplace(key, entry);
    return entry;
  }

  // Has it asked by a thread; mutex_ is held.
  absl::Status Ask(const std::shared_ptr<Entry>& entry) {
    if (stopping_) return Stopping();
    if (!breaker_.Allows(clock_())) {
      ++counters_.breaker_open;
      return AwayStatus();
    }
    if (queue_.size() >= options_.max_waiting) {
      return NoAnswer(absl::StatusCode::kResourceExhausted, "ADVICE_QUEUE_FULL",
                      absl::StrCat(queue_.size(), " questions wait to be asked already"));
    }
    if (threads_.size() < static_cast<size_t>(std::max(options_.threads, 1)) &&
        idle_threads_ <= queue_.size())
      threads_.emplace_back([this] { Work(); });
    queue_.push_back(entry);
    entry->is_pending = true;
    asked_.notify_one();
    return absl::OkStatus();
  }

  absl::Status AwayStatus() const {
    return NoAnswer(
        absl::StatusCode::kUnavailable, "ADVICE_BREAKER_OPEN",
        absl::StrCat("the server failed ", std::max(options_.failures, 1),
                     " times in a row and is left alone for a while; last: ", last_failure_));
  }

  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_threads_;
      asked_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      --idle_threads_;
      if (stopping_) return;
      const std::shared_ptr<Entry> entry = std::move(queue_.front());
      queue_.pop_front();
      if (!breaker_.Begin(clock_())) {
        Finish(*entry, AwayStatus(), false);
        continue;
      }
      ++counters_.calls;
      lock.unlock();
      absl::StatusOr<Advice> advice = Answer(entry->question);
      lock.lock();
      Finish(*entry, std::move(advice), true);
    }
  }

  // Puts a question to the server; no lock is held. Throws nothing: nobody would catch it.
  absl::StatusOr<Advice> Answer(const AdviceQuestion& question) const noexcept {
    try {
      return AskServer(question);
    } catch (const std::exception&) {
      return absl::InternalError("");  // no memory for more
    }
  }

  absl::StatusOr<Advice> AskServer(const AdviceQuestion& question) const {
    const CallTerms terms{.timeout = options_.call_timeout, .retry = {.max_attempts = 1}};
    v1::RecommendWorkersRequest request = RequestOf(question);
    if (NeedsCommunication(question)) {
      const auto communication = CallFor<v1::PredictThroughputResponse>(
          *connection_, CommunicationRequestOf(question), terms);
      if (!communication.ok()) return communication.status();
      const absl::Status set = SetWorkersPerNode(question, *communication, request);
      if (!set.ok()) return set;
    } else if (question.workers_per_node > 1) {
      SetNode(question, request);
    }
    const auto reply = CallFor<v1::RecommendWorkersResponse>(*connection_, request, terms);
    if (!reply.ok()) return reply.status();
    if (!NeedsKneeRequest(question)) return AdviceOf(question, *reply, nullptr);
    const auto knee =
        CallFor<v1::RecommendWorkersResponse>(*connection_, KneeRequestOf(request), terms);
    if (!knee.ok()) return knee.status();
    return AdviceOf(question, *reply, &*knee);
  }

  // Takes the end of a round; mutex_ is held.
  void Finish(Entry& entry, absl::StatusOr<Advice> advice, bool called) {
    const bool stands = advice.ok() || IsAboutQuestion(advice.status().code());
    const Time now = clock_();
    if (called) {
      breaker_.End(now, !stands);
      if (!stands) {
        ++counters_.failed_calls;
        last_failure_ = PrintableText(absl::StrCat(absl::StatusCodeToString(advice.status().code()),
                                                   ": ", advice.status().message()),
                                      kMaxFailure);
      }
    }
    if (stands) idle_waits_ = 0;
    entry.is_pending = false;
    ++entry.rounds;
    entry.answer.reset();
    entry.last = std::move(advice);
    if (stands) {
      entry.answer = entry.last;
      const nanoseconds most = !entry.last->ok()               ? kKeepRefusals
                               : (*entry.last)->low_confidence ? kKeepDoubts
                                                               : options_.keep;
      entry.until = now + std::min(options_.keep, most);
    }
    answered_.notify_all();
  }

  const std::shared_ptr<Connection> connection_;
  const AdviserOptions options_;
  const Clock clock_;

  mutable std::mutex mutex_;
  std::condition_variable asked_;     // the queue has one more, or the end
  std::condition_variable answered_;  // a round came to an end
  // All guarded by mutex_, but for `threads_` in the destructor.
  Breaker breaker_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
  std::deque<std::shared_ptr<Entry>> queue_;
  std::vector<std::thread> threads_;
  size_t idle_threads_ = 0;
  int idle_waits_ = 0;  // in a row, that ended without an answer of the server
  int64_t uses_ = 0;
  AdviserCounters counters_;
  std::string last_failure_;
  bool stopping_ = false;
};

Adviser::Adviser(const ClientOptions& client, const AdviserOptions& options)
    : Adviser(MakeRemoteConnection(MakeGrpcStub(client), MakeSystemRetryEnvironment()), options,
              [] { return Time(std::chrono::steady_clock::now()); }) {}

Adviser::Adviser(std::shared_ptr<Connection> connection, const AdviserOptions& options, Clock clock)
    : impl_(std::make_unique<Impl>(std::move(connection), options, std::move(clock))) {}

Adviser::~Adviser() = default;

absl::StatusOr<Advice> Adviser::Advise(const AdviceQuestion& question) noexcept {
  try {
    return impl_->Advise(question);
  } catch (const std::exception&) {
    return absl::InternalError("");  // no memory or no thread to be had
  }
}

AdviserCounters Adviser::counters() const { return impl_->counters(); }

}  // namespace stepcast::client
