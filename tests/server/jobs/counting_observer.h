// Counts what a job pool tells, and knows how long its jobs waited and ran. Threads: safe.
#pragma once

#include <atomic>
#include <cstddef>

#include "server/jobs/job_pool.h"

namespace stepcast::server {

class CountingObserver final : public JobObserver {
 public:
  void OnQueued(size_t /*queue_length*/) override { ++queued; }
  void OnRefused() override { ++refused; }
  void OnDropped() override { ++dropped; }
  void OnStarted(size_t /*queue_length*/, double seconds) override {
    ++started;
    wait_seconds = seconds;
  }
  void OnDone(double seconds) override {
    ++done;
    run_seconds = seconds;
  }

  std::atomic<int> queued{0};
  std::atomic<int> refused{0};
  std::atomic<int> dropped{0};
  std::atomic<int> started{0};
  std::atomic<int> done{0};
  std::atomic<double> wait_seconds{-1};
  std::atomic<double> run_seconds{-1};
};

}  // namespace stepcast::server
