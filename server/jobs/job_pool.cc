#include "server/jobs/job_pool.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "server/base/mutex.h"
#include "server/jobs/fair_queue.h"
#include "server/jobs/job_admission.h"

namespace stepcast::server {

namespace {

// The queue is searched at most so often for jobs that nobody wants.
constexpr std::chrono::milliseconds kReapInterval(10);
constexpr int64_t kReapIntervalNs = std::chrono::nanoseconds(kReapInterval).count();
constexpr int kRestartDelayMs = 500;
constexpr int kMostNice = 19;
// The time that a thread that yields is given at once. Since Linux 6.12 one that wakes and is given
// less takes its place without waiting for the end of it; what either gets in all is the same.
constexpr uint64_t kYieldingSliceNs = 20'000'000;

// The argument of sched_setattr(2), which Debian 12's C library does not declare.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

double CostOf(const JobTicket& ticket) {
  return ticket.expected_seconds > 0 ? ticket.expected_seconds : kUnknownJobSeconds;
}

absl::Status ShuttingDownError() {
  return MakeError(absl::StatusCode::kUnavailable, "the server is shutting down",
                   {.reason = "SHUTTING_DOWN", .retry_delay_ms = kRestartDelayMs});
}

absl::Status DeadlinePassedError() {
  return MakeError(absl::StatusCode::kDeadlineExceeded,
                   "the request's deadline has passed before its turn in the queue came",
                   {.reason = "DEADLINE_EXCEEDED"});
}

absl::Status AbandonedError() {
  return MakeError(absl::StatusCode::kCancelled, "nobody waits for the answer any more",
                   {.reason = "CANCELLED"});
}

}  // namespace

class JobPool::State {
 public:
  struct Waiting {
    JobTicket ticket;
    Job job;
    IsAbandoned is_abandoned;
    int64_t since_ns = 0;
    uint64_t number = 0;
  };

  explicit State(const JobPoolOptions& options)
      : options_(options),
        clock_(options.clock == nullptr ? real_clock_ : *options.clock),
        limits_{.queue_max = options.queue_max,
                .queue_seconds_max = options.queue_seconds_max,
                .queue_max_name = options.queue_max_name} {
    threads_.emplace_back([this] { ReapWaiting(); });
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { RunJobs(); });
    for (int i = 0; i < options_.helpers; ++i) threads_.emplace_back([this] { RunHelpers(); });
  }

  ~State() {
    Drain();
    for (std::thread& thread : threads_) thread.join();
  }

  absl::Status Submit(Waiting next) {
    size_t queue_length = 0;
    std::optional<Waiting> displaced;
    absl::Status why = absl::OkStatus();
    absl::Status status = Enqueue(next, queue_length, displaced, why);
    if (IsFull(status) && Reap()) status = Enqueue(next, queue_length, displaced, why);
    if (displaced) Drop(*std::move(displaced), why);
    if (status.ok()) {
      work_.NotifyOne();
      if (queue_length == 1) waiting_.NotifyOne();
      if (options_.observer != nullptr) options_.observer->OnQueued(queue_length);
    } else if (options_.observer != nullptr) {
      options_.observer->OnRefused();
    }
    return status;
  }

  absl::Status Refusal(const JobTicket& ticket) {
    const auto look = [&] {
      const int64_t now_ns = clock_.MonotonicNs();
      bool displaces = false;
      MutexLock lock(mutex_);
      return Admission(ticket, now_ns, displaces);
    };
    absl::Status status = look();
    if (IsFull(status) && Reap()) status = look();
    if (!status.ok() && options_.observer != nullptr) options_.observer->OnRefused();
    return status;
  }

  // Moves from `helper` only if it is taken.
  bool SubmitIfIdle(Helper& helper) {
    {
      MutexLock lock(mutex_);
      if (draining_ || helpers_ >= static_cast<size_t>(options_.helpers) ||
          unfinished_ + helpers_ >= threads())
        return false;
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

  void SetLimits(size_t queue_max, double queue_seconds_max) {
    MutexLock lock(mutex_);
    limits_.queue_max = queue_max;
    limits_.queue_seconds_max = queue_seconds_max;
  }

  bool IsCrowded() const {
    MutexLock lock(mutex_);
    return unfinished_ + helpers_ > threads();
  }

  std::vector<JobListing> List() const {
    const int64_t now_ns = clock_.MonotonicNs();
    std::vector<JobListing> jobs;
    {
      MutexLock lock(mutex_);
      const auto add = [&](const JobTicket& ticket, int64_t since_ns, bool is_running) {
        jobs.push_back({.ticket = ticket,
                        .is_running = is_running,
                        .age_seconds = Seconds(now_ns - since_ns)});
      };
      for (const auto& [number, running] : running_) add(running.ticket, running.since_ns, true);
      queue_.ForEach([&](const Waiting& waiting) { add(waiting.ticket, waiting.since_ns, false); });
    }
    std::stable_sort(jobs.begin(), jobs.end(), [](const JobListing& a, const JobListing& b) {
      return a.age_seconds > b.age_seconds;
    });
    return jobs;
  }

  void Drain() {
    MutexLock lock(mutex_);
    draining_ = true;
    work_.NotifyAll();
    helper_work_.NotifyAll();
    waiting_.NotifyAll();
    while (unfinished_ > 0 || helpers_ > 0) idle_.Wait(mutex_);
  }

 private:
  struct Running {
    JobTicket ticket;
    int64_t since_ns = 0;
    int64_t start_ns = 0;
  };

  static bool IsFull(const absl::Status& status) {
    return status.code() == absl::StatusCode::kResourceExhausted;
  }
  size_t threads() const { return static_cast<size_t>(options_.threads); }

  PoolLoad Load(const std::string& client, int64_t now_ns) const STEPCAST_REQUIRES(mutex_) {
    PoolLoad load{.now_ns = now_ns,
                  .threads = threads(),
                  .unfinished = unfinished_,
                  .queue_seconds = queue_.cost(),
                  .ahead_seconds = queue_.CostBefore(client)};
    for (const auto& [number, running] : running_) {
      double left = running.ticket.expected_seconds - Seconds(now_ns - running.start_ns);
      if (running.ticket.deadline_ns)
        left = std::min(left, Seconds(*running.ticket.deadline_ns - now_ns));
      load.running_seconds += std::max(0.0, left);
    }
    return load;
  }

  // OK where a job with that ticket is taken. `displaces` is set where it takes the place of one of
  // the client with the most.
  absl::Status Admission(const JobTicket& ticket, int64_t now_ns, bool& displaces) const
      STEPCAST_REQUIRES(mutex_) {
    if (draining_) return ShuttingDownError();
    const PoolLoad load = Load(ticket.client, now_ns);
    if (absl::Status status = CheckDeadline(ticket, load); !status.ok()) return status;
    // Counting what is unfinished, not what is in the queue, makes the answer independent of how
    // soon an idle thread wakes up.
    const absl::Status room = CheckRoom(ticket, load, limits_);
    displaces = !room.ok() && queue_.HasLongerThan(queue_.SizeOf(ticket.client) + 1);
    return displaces ? absl::OkStatus() : room;
  }

  // Moves from `next` only if it is taken, so that a refused one is destroyed outside the lock.
  // A job that had to go for it is to be told `why` outside, too.
  absl::Status Enqueue(Waiting& next, size_t& queue_length, std::optional<Waiting>& displaced,
                       absl::Status& why) {
    const int64_t now_ns = clock_.MonotonicNs();
    bool displaces = false;
    MutexLock lock(mutex_);
    if (absl::Status status = Admission(next.ticket, now_ns, displaces); !status.ok())
      return status;
    if (displaces) {
      why = QueueFull(Load(next.ticket.client, now_ns), limits_,
                      "a client with fewer jobs waiting came first");
      displaced = queue_.TakeFromLongest(queue_.SizeOf(next.ticket.client) + 1);
      --unfinished_;
    }
    ++unfinished_;
    next.since_ns = now_ns;
    next.number = next_number_++;
    const std::string client = next.ticket.client;
    const double cost = CostOf(next.ticket);
    queue_.Push(client, cost, std::move(next));
    queue_length = queue_.size();
    return absl::OkStatus();
  }

  // Ends the jobs that nobody waits for. False: there was none, or the queue was searched a moment
  // ago.
  bool Reap() {
    const int64_t now_ns = clock_.MonotonicNs();
    std::map<uint64_t, IsAbandoned> asked;
    std::vector<Waiting> over;
    {
      MutexLock lock(mutex_);
      if (now_ns < next_reap_ns_) return false;
      next_reap_ns_ = now_ns + kReapIntervalNs;
      queue_.ForEach([&](const Waiting& waiting) {
        if (waiting.is_abandoned) asked.emplace(waiting.number, waiting.is_abandoned);
      });
      over = queue_.ExtractIf([&](const Waiting& waiting) { return IsOver(waiting, now_ns); });
    }
    std::erase_if(asked, [](const auto& entry) { return !entry.second(); });
    std::vector<Waiting> abandoned;
    {
      MutexLock lock(mutex_);
      abandoned =
          queue_.ExtractIf([&](const Waiting& waiting) { return asked.contains(waiting.number); });
    }
    for (Waiting& waiting : over) Drop(std::move(waiting), DeadlinePassedError());
    for (Waiting& waiting : abandoned) Drop(std::move(waiting), AbandonedError());
    MutexLock lock(mutex_);
    unfinished_ -= over.size() + abandoned.size();
    if (unfinished_ == 0 && helpers_ == 0) idle_.NotifyAll();
    return !abandoned.empty() || !over.empty();
  }

  static bool IsOver(const Waiting& waiting, int64_t now_ns) {
    return waiting.ticket.end_ns && now_ns >= *waiting.ticket.end_ns;
  }

  void Drop(Waiting waiting, const absl::Status& why) {
    if (options_.observer != nullptr) options_.observer->OnDropped();
    std::move(waiting.job)(why);
  }

  void ReapWaiting() {
    while (true) {
      {
        MutexLock lock(mutex_);
        while (queue_.empty() && !draining_) waiting_.Wait(mutex_);
        if (queue_.empty()) return;
        waiting_.WaitFor(mutex_, kReapInterval);
      }
      Reap();
    }
  }

  void RunJobs() {
    Yield();
    Waiting next;
    size_t queue_length = 0;
    while (Next(next, queue_length)) {
      const int64_t start_ns = clock_.MonotonicNs();
      if (options_.observer != nullptr)
        options_.observer->OnStarted(queue_length, Seconds(start_ns - next.since_ns));
      std::move(next.job)(absl::OkStatus());
      next.job = nullptr;
      next.is_abandoned = nullptr;
      if (options_.observer != nullptr)
        options_.observer->OnDone(Seconds(clock_.MonotonicNs() - start_ns));
      CountDone(next.number);
    }
  }

  // Waits for a job; false: there will be none any more.
  bool Next(Waiting& next, size_t& queue_length) {
    MutexLock lock(mutex_);
    while (queue_.empty() && !draining_) work_.Wait(mutex_);
    if (queue_.empty()) return false;
    next = queue_.Pop();
    queue_length = queue_.size();
    running_.emplace(next.number, Running{.ticket = next.ticket,
                                          .since_ns = next.since_ns,
                                          .start_ns = clock_.MonotonicNs()});
    return true;
  }

  void RunHelpers() {
    Yield();
    for (Helper helper; NextHelper(helper);) {
      std::move(helper)();
      helper = nullptr;
      CountHelperDone();
    }
  }

  bool NextHelper(Helper& next) {
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

  void CountDone(uint64_t number) {
    MutexLock lock(mutex_);
    running_.erase(number);
    --unfinished_;
    if (unfinished_ == 0 && helpers_ == 0) idle_.NotifyAll();
  }

  // Linux gives each thread a niceness and a slice of its own; a new one has the process's. To
  // yield is always allowed; where a filter of system calls knows no slices, there is the niceness.
  void Yield() const {
    if (options_.nice == 0) return;
    const auto thread = static_cast<id_t>(gettid());
    const int nice = std::min(kMostNice, getpriority(PRIO_PROCESS, thread) + options_.nice);
    SchedulingAttributes attributes{.nice = nice, .runtime_ns = kYieldingSliceNs};
    if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) setpriority(PRIO_PROCESS, thread, nice);
  }

  const JobPoolOptions options_;
  const RealClock real_clock_;
  const Clock& clock_;
  mutable Mutex mutex_;
  CondVar work_;         // a job was queued, or draining began
  CondVar waiting_;      // the same, for who looks after jobs that wait
  CondVar helper_work_;  // the same of helpers
  CondVar idle_;         // nothing is unfinished
  AdmissionLimits limits_ STEPCAST_GUARDED_BY(mutex_);
  FairQueue<Waiting> queue_ STEPCAST_GUARDED_BY(mutex_);
  std::map<uint64_t, Running> running_ STEPCAST_GUARDED_BY(mutex_);
  std::deque<Helper> helper_queue_
      STEPCAST_GUARDED_BY(mutex_);                     // each has a thread that is about to take it
  size_t unfinished_ STEPCAST_GUARDED_BY(mutex_) = 0;  // jobs queued or running
  size_t helpers_ STEPCAST_GUARDED_BY(mutex_) = 0;     // the same of helpers
  uint64_t next_number_ STEPCAST_GUARDED_BY(mutex_) = 0;
  int64_t next_reap_ns_ STEPCAST_GUARDED_BY(mutex_) = 0;
  bool draining_ STEPCAST_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

JobPool::JobPool(const JobPoolOptions& options) : state_(std::make_unique<State>(options)) {}

JobPool::~JobPool() = default;

absl::Status JobPool::Submit(JobTicket ticket, Job job, IsAbandoned is_abandoned) {
  return state_->Submit({.ticket = std::move(ticket),
                         .job = std::move(job),
                         .is_abandoned = std::move(is_abandoned)});
}

absl::Status JobPool::Submit(Helper job) {
  // Helpers are of one client, so none takes another's place.
  return Submit({}, [job = std::move(job)](const absl::Status& status) mutable {
    if (status.ok()) std::move(job)();
  });
}

absl::Status JobPool::Refusal(const JobTicket& ticket) { return state_->Refusal(ticket); }

bool JobPool::SubmitIfIdle(Helper helper) { return state_->SubmitIfIdle(helper); }

bool JobPool::HasIdle() const { return state_->HasIdle(); }

bool JobPool::IsCrowded() const { return state_->IsCrowded(); }

void JobPool::SetLimits(size_t queue_max, double queue_seconds_max) {
  state_->SetLimits(queue_max, queue_seconds_max);
}

std::vector<JobListing> JobPool::List() const { return state_->List(); }

void JobPool::Drain() { state_->Drain(); }

}  // namespace stepcast::server
