// A std::mutex that clang's -Wthread-safety understands, with its lock and its condition variable.
//
// Not absl::Mutex: the packaged Abseil is not instrumented, so ThreadSanitizer would report races
// that are none.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Clang's thread-safety annotations, checked by -Wthread-safety; nothing to other compilers.
//
// Source: https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#if defined(__clang__)
#define STEPCAST_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define STEPCAST_THREAD_ANNOTATION(x)
#endif

#define STEPCAST_CAPABILITY(name) STEPCAST_THREAD_ANNOTATION(capability(name))
#define STEPCAST_SCOPED_CAPABILITY STEPCAST_THREAD_ANNOTATION(scoped_lockable)
// A member that is read and written only while the mutex is held.
#define STEPCAST_GUARDED_BY(mutex) STEPCAST_THREAD_ANNOTATION(guarded_by(mutex))
// A pointer whose target is read and written only while the mutex is held.
#define STEPCAST_PT_GUARDED_BY(mutex) STEPCAST_THREAD_ANNOTATION(pt_guarded_by(mutex))
// The caller must hold the mutex, or must not.
#define STEPCAST_REQUIRES(...) STEPCAST_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define STEPCAST_EXCLUDES(...) STEPCAST_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define STEPCAST_ACQUIRE(...) STEPCAST_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define STEPCAST_RELEASE(...) STEPCAST_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
// For code whose locking the analysis cannot follow.
#define STEPCAST_NO_THREAD_SAFETY_ANALYSIS STEPCAST_THREAD_ANNOTATION(no_thread_safety_analysis)

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
