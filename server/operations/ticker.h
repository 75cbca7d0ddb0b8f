// A thread that calls a function again and again: when it is woken, and after as long as the
// function said.
//
// Threads: Wake is safe; Start and Stop belong to one thread. Lifetime: the destructor stops.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "server/base/mutex.h"

namespace stepcast::server {

class Ticker {
 public:
  Ticker() = default;
  ~Ticker() { Stop(); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Calls `tick`, which returns after how many nanoseconds it is to be called again at the latest.
  // REQUIRES: called once, before Stop.
  void Start(std::function<int64_t()> tick);
  // One more call begins soon; many wakings before it are one.
  void Wake();
  // Returns when the call that runs is over; there will be none any more. Idempotent.
  void Stop();

 private:
  void Run(const std::function<int64_t()>& tick);

  Mutex mutex_;
  CondVar woken_;
  bool wake_ STEPCAST_GUARDED_BY(mutex_) = false;
  bool stop_ STEPCAST_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace stepcast::server
