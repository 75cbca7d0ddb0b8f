// A std::mutex that clang's -Wthread-safety understands, with its lock and its condition variable.
//
// Not absl::Mutex: the packaged Abseil is not instrumented, so ThreadSanitizer would report races
// that are none.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "server/base/thread_annotations.h"

namespace stepcast::server {

class STEPCAST_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() STEPCAST_ACQUIRE() { mutex_.lock(); }
  void Unlock() STEPCAST_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// A lock of a mutex for a scope.
class STEPCAST_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) STEPCAST_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() STEPCAST_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  // Releases the mutex, waits to be notified, takes it again. May return without a notification:
  // wait in a loop on the condition.
  void Wait(Mutex& mutex) STEPCAST_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  // The same, but returns after so long at the latest.
  void WaitFor(Mutex& mutex, std::chrono::nanoseconds longest) STEPCAST_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    changed_.wait_for(lock, longest);
    lock.release();
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace stepcast::server
