// The updates of one worker's gradients on a parameter server: first come, first served, each a
// timed sleep.
//
// An update begins when its gradient was received or the one before was planned to end, so waking
// late does not add up. Threads: Add from any; done is called from the queue's own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "tests/testbed/node/messages.h"

namespace stepcast::testbed {

class UpdateQueue {
 public:
  using Done = std::function<void(const UploadReply&)>;

  UpdateQueue() : thread_([this] { Run(); }) {}
  // Drops what has not begun.
  ~UpdateQueue();

  void Add(int64_t received_ns, int64_t update_ns, Done done);

 private:
  struct Update {
    int64_t received_ns = 0;
    int64_t update_ns = 0;
    Done done;
  };

  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Update> updates_;  // guarded by mutex_
  bool over_ = false;           // guarded by mutex_
  std::thread thread_;
};

}  // namespace stepcast::testbed
