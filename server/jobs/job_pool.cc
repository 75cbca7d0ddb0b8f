#include "server/jobs/job_pool.h"

#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/base/mutex.h"

namespace stepcast::server {

namespace {

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

class JobPool::State {
 public:
  explicit State(const JobPoolOptions& options) : options_(options), clock_(options.clock == nullptr ? real_clock_ : *options.clock) {
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { RunJobs(); });
    for (int i = 0; i < options_.helpers; ++i) threads_.emplace_back([this] { RunHelpers(); });
  }

  ~State() {
    Drain();
    for (std::thread& thread : threads_) thread.join();
  }

  absl::Status Submit(Job job) {
    size_t queue_length = 0;
    const Admission admission = Enqueue(job, queue_length);
    if (admission == Admission::kTaken) {
      work_.NotifyOne();
      if (options_.observer != nullptr) options_.observer->OnQueued(queue_length);
      return absl::OkStatus();
    }
    if (options_.observer != nullptr) options_.observer->OnRefused();
    return admission == Admission::kFull ? FullError() : ShuttingDownError();
  }

  // Moves from `helper` only if it is taken.
  bool SubmitIfIdle(Job& helper) {
    {
      MutexLock lock(mutex_);
      if (draining_ || helpers_ >= static_cast<size_t>(options_.helpers) || unfinished_ + helpers_ >= threads()) return false;
      ++helpers_;
      helper_queue_.push_back(std::move(helper));
    }
    helper_work_.NotifyOne();
    return true;
  }

  bool HasIdle() const {
    MutexLock lock(mutex_);
    return !draining_ && unfinished_ + helpers_ < threads();
  }

  bool IsCrowded() const {
    MutexLock lock(mutex_);
    return unfinished_ + helpers_ > threads();
  }

  void Drain() {
    MutexLock lock(mutex_);
    draining_ = true;
    work_.NotifyAll();
    helper_work_.NotifyAll();
    while (unfinished_ > 0 || helpers_ > 0) idle_.Wait(mutex_);
  }

 private:
  enum class Admission { kTaken, kFull, kDraining };

  struct Waiting {
    Job job;
    int64_t since_ns = 0;
  };

  size_t threads() const { return static_cast<size_t>(options_.threads); }

  // Moves from `job` only if it is taken, so that a refused one is destroyed outside the lock.
  Admission Enqueue(Job& job, size_t& queue_length) {
    const int64_t now_ns = clock_.MonotonicNs();
    MutexLock lock(mutex_);
    if (draining_) return Admission::kDraining;
    // Counting what is unfinished, not what is in the queue, makes the answer independent of how soon an idle thread wakes up.
    if (unfinished_ >= threads() + options_.queue_max) return Admission::kFull;
    ++unfinished_;
    queue_.push_back({.job = std::move(job), .since_ns = now_ns});
    queue_length = queue_.size();
    return Admission::kTaken;
  }

  void RunJobs() {
    Waiting next;
    size_t queue_length = 0;
    while (Next(next, queue_length)) {
      const int64_t start_ns = clock_.MonotonicNs();
      if (options_.observer != nullptr) options_.observer->OnStarted(queue_length, Seconds(start_ns - next.since_ns));
      std::move(next.job)();
      next.job = nullptr;
      if (options_.observer != nullptr) options_.observer->OnDone(Seconds(clock_.MonotonicNs() - start_ns));
      CountDone();
    }
  }

  // Waits for a job; false: there will be none any more.
  bool Next(Waiting& next, size_t& queue_length) {
    MutexLock lock(mutex_);
    while (queue_.empty() && !draining_) work_.Wait(mutex_);
    if (queue_.empty()) return false;
    next = std::move(queue_.front());
    queue_.pop_front();
    queue_length = queue_.size();
    return true;
  }

  void RunHelpers() {
    for (Job helper; NextHelper(helper);) {
      std::move(helper)();
      helper = nullptr;
      CountHelperDone();
    }
  }

  bool NextHelper(Job& next) {
    MutexLock lock(mutex_);
    while (helper_queue_.empty() && !draining_) helper_work_.Wait(mutex_);
    if (helper_queue_.empty()) return false;
    next = std::move(helper_queue_.front());
    helper_queue_.pop_front();
    return true;
  }

  void CountHelperDone() {
    MutexLock lock(mutex_);
    --helpers_;
    if (unfinished_ == 0 && helpers_ == 0) idle_.NotifyAll();
  }

  void CountDone() {
    MutexLock lock(mutex_);
    --unfinished_;
    if (unfinished_ == 0 && helpers_ == 0) idle_.NotifyAll();
  }

  absl::Status FullError() const {
    return MakeError(absl::StatusCode::kResourceExhausted, absl::StrCat("the job queue is full: ", options_.queue_max, " jobs are waiting"),
                     {.reason = "QUEUE_FULL",
                      .metadata = {{"queue_max", absl::StrCat(options_.queue_max)}},
                      .retry_delay_ms = options_.retry_delay_ms,
                      .quota_subject = "queue_max"});
  }

  absl::Status ShuttingDownError() const {
    return MakeError(absl::StatusCode::kUnavailable, "the server is shutting down",
                     {.reason = "SHUTTING_DOWN", .retry_delay_ms = options_.retry_delay_ms});
  }

  const JobPoolOptions options_;
  const RealClock real_clock_;
  const Clock& clock_;
  mutable Mutex mutex_;
  CondVar work_;         // a job was queued, or draining began
  CondVar helper_work_;  // the same of helpers
  CondVar idle_;         // nothing is unfinished
  std::deque<Waiting> queue_ STEPCAST_GUARDED_BY(mutex_);
  std::deque<Job> helper_queue_ STEPCAST_GUARDED_BY(mutex_);  // each has a thread that is about to take it
  size_t unfinished_ STEPCAST_GUARDED_BY(mutex_) = 0;         // jobs queued or running
  size_t helpers_ STEPCAST_GUARDED_BY(mutex_) = 0;            // the same of helpers
  bool draining_ STEPCAST_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

JobPool::JobPool(const JobPoolOptions& options) : state_(std::make_unique<State>(options)) {}

JobPool::~JobPool() = default;

absl::Status JobPool::Submit(Job job) { return state_->Submit(std::move(job)); }

bool JobPool::SubmitIfIdle(Job helper) { return state_->SubmitIfIdle(helper); }

bool JobPool::HasIdle() const { return state_->HasIdle(); }

bool JobPool::IsCrowded() const { return state_->IsCrowded(); }

void JobPool::Drain() { state_->Drain(); }

}  // namespace stepcast::server
