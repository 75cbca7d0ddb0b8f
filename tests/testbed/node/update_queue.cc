#include "tests/testbed/node/update_queue.h"

#include <algorithm>
#include <utility>

#include "tests/testbed/node/steady_time.h"

namespace stepcast::testbed {

UpdateQueue::~UpdateQueue() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void UpdateQueue::Add(int64_t received_ns, int64_t update_ns, Done done) {
  {
    const std::lock_guard lock(mutex_);
    updates_.push_back(
        {.received_ns = received_ns, .update_ns = update_ns, .done = std::move(done)});
  }
  changed_.notify_one();
}

void UpdateQueue::Run() {
  int64_t free_at_ns = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return over_ || !updates_.empty(); });
    if (over_) return;
    const Update update = std::move(updates_.front());
    updates_.pop_front();
    lock.unlock();
    const int64_t start_ns = std::max(update.received_ns, free_at_ns);
    free_at_ns = start_ns + update.update_ns;
    SleepUntilNs(free_at_ns);
    update.done({.received_ns = update.received_ns,
                 .update_start_ns = start_ns,
                 .update_end_ns = free_at_ns});
    lock.lock();
  }
}

}  // namespace stepcast::testbed
