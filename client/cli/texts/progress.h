// A sign at the terminal that something is going on.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "client/cli/session.h"

namespace stepcast::client {

// From construction to destruction, but not before `delay` has passed: one line on the console's
// err that says what is done, for how long and how much of it, renewed in place, and removed in the
// end. Nothing at
// all, and no thread, if err is no terminal. Threads: writes to err from a thread of its own, so
// nobody else must meanwhile.
class Progress {
 public:
  struct Pace {
    std::chrono::milliseconds delay{1000};
    std::chrono::milliseconds interval{100};
  };

  Progress(const Console& console, std::string what, Pace pace);
  Progress(const Console& console, std::string what) : Progress(console, std::move(what), Pace{}) {}
  ~Progress();
  Progress(const Progress&) = delete;
  // So many of the bytes of ExpectBytes were read. Any thread.
  void ReachBytes(int64_t bytes) { reached_ = bytes; }
  // So many bytes are to be read; below 1: not known.
  void ExpectBytes(int64_t bytes) { expected_ = bytes; }
  Progress& operator=(const Progress&) = delete;

 private:
  void Show(Pace pace);
  std::string ReadText() const;

  const Console& console_;
  const std::string what_;
  std::atomic<int64_t> reached_ = 0;
  std::atomic<int64_t> expected_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace stepcast::client
