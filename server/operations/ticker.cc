#include "server/operations/ticker.h"

#include <chrono>
#include <utility>

namespace stepcast::server {

void Ticker::Start(std::function<int64_t()> tick) {
  thread_ = std::thread([this, tick = std::move(tick)] { Run(tick); });
}

void Ticker::Wake() {
  MutexLock lock(mutex_);
  wake_ = true;
  woken_.NotifyOne();
}

void Ticker::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    woken_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void Ticker::Run(const std::function<int64_t()>& tick) {
  while (true) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(tick());
    MutexLock lock(mutex_);
    for (auto now = std::chrono::steady_clock::now(); !wake_ && !stop_ && now < end;
         now = std::chrono::steady_clock::now()) {
      woken_.WaitFor(mutex_, end - now);
    }
    if (stop_) return;
    wake_ = false;
  }
}

}  // namespace stepcast::server
