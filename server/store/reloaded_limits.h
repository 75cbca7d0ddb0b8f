// The limits of a store that serves meanwhile.
//
// A call reads them once and goes by what it has read. Threads: safe.
#pragma once

#include "server/base/mutex.h"
#include "server/store/store_limits.h"

namespace stepcast::server {

class ReloadedLimits {
 public:
  explicit ReloadedLimits(const StoreLimits& limits) : limits_(limits) {}

  StoreLimits Get() const {
    MutexLock lock(mutex_);
    return limits_;
  }
  void Set(const StoreLimits& limits) {
    MutexLock lock(mutex_);
    limits_ = limits;
  }

 private:
  mutable Mutex mutex_;
  StoreLimits limits_ STEPCAST_GUARDED_BY(mutex_);
};

}  // namespace stepcast::server
