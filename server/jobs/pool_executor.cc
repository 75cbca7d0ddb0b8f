#include "server/jobs/pool_executor.h"

#include <memory>
#include <optional>

#include "server/base/mutex.h"

namespace stepcast::server {

namespace {

// The parts of one ForEach. Shared with helpers, which may come when all is over: from then on
// there is nothing to begin, and `part` is not touched.
class Parts {
 public:
  Parts(size_t count, absl::FunctionRef<bool(size_t)> part) : part_(part), end_(count) {}

  // The next part, which is now one of those that run; none: no more are begun.
  std::optional<size_t> Begin() {
    MutexLock lock(mutex_);
    if (next_ >= end_) return std::nullopt;
    ++running_;
    return next_++;
  }

  bool HasMore() {
    MutexLock lock(mutex_);
    return next_ < end_;
  }

  // REQUIRES: begun.
  void Run(size_t index) {
    const bool go_on = part_(index);
    MutexLock lock(mutex_);
    if (!go_on) end_ = next_;
    if (--running_ == 0) none_runs_.NotifyAll();
  }

  // REQUIRES: no more are begun.
  void WaitForThoseThatRun() {
    MutexLock lock(mutex_);
    while (running_ > 0) none_runs_.Wait(mutex_);
  }

 private:
  const absl::FunctionRef<bool(size_t)> part_;
  Mutex mutex_;
  CondVar none_runs_;
  size_t next_ STEPCAST_GUARDED_BY(mutex_) = 0;
  size_t end_ STEPCAST_GUARDED_BY(mutex_);
  size_t running_ STEPCAST_GUARDED_BY(mutex_) = 0;
};

// False: there is none any more.
bool RunNext(JobPool& pool, const std::shared_ptr<Parts>& parts) {
  const std::optional<size_t> index = parts->Begin();
  if (!index) return false;
  if (parts->HasMore()) {
    pool.SubmitIfIdle([&pool, parts] {
      while (!pool.IsCrowded() && RunNext(pool, parts)) {
      }
    });
  }
  parts->Run(*index);
  return true;
}

}  // namespace

void PoolExecutor::ForEach(size_t count, absl::FunctionRef<bool(size_t)> part) const {
  const auto parts = std::make_shared<Parts>(count, part);
  while (RunNext(pool_, parts)) {
  }
  parts->WaitForThoseThatRun();
}

}  // namespace stepcast::server
