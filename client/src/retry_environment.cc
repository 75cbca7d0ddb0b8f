#include "client/src/retry_environment.h"

#include <mutex>
#include <random>
#include <thread>

namespace stepcast::client {

namespace {

class SystemRetryEnvironment : public RetryEnvironment {
 public:
  Time Now() override { return std::chrono::steady_clock::now(); }
  void Sleep(std::chrono::nanoseconds length) override { std::this_thread::sleep_for(length); }
  double Chance() override {
    const std::lock_guard lock(mutex_);
    return std::uniform_real_distribution<double>(0, 1)(generator_);
  }

 private:
  std::mutex mutex_;
  std::minstd_rand generator_{std::random_device{}()};  // guarded by mutex_
};

}  // namespace

std::unique_ptr<RetryEnvironment> MakeSystemRetryEnvironment() {
  return std::make_unique<SystemRetryEnvironment>();
}

}  // namespace stepcast::client
