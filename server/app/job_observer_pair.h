// A pair of observers of one job pool, both of which are told.
#pragma once

#include "server/jobs/job_pool.h"

namespace stepcast::server {

class JobObserverPair final : public JobObserver {
 public:
  // Borrows both; the second may be null.
  JobObserverPair(JobObserver& first, JobObserver* second) : first_(first), second_(second) {}

  void OnQueued(size_t queue_length) override {
    first_.OnQueued(queue_length);
    if (second_ != nullptr) second_->OnQueued(queue_length);
  }
  void OnRefused() override {
    first_.OnRefused();
    if (second_ != nullptr) second_->OnRefused();
  }
  void OnDropped() override {
    first_.OnDropped();
    if (second_ != nullptr) second_->OnDropped();
  }
  void OnStarted(size_t queue_length, double wait_seconds) override {
    first_.OnStarted(queue_length, wait_seconds);
    if (second_ != nullptr) second_->OnStarted(queue_length, wait_seconds);
  }
  void OnDone(double run_seconds) override {
    first_.OnDone(run_seconds);
    if (second_ != nullptr) second_->OnDone(run_seconds);
  }

 private:
  JobObserver& first_;
  JobObserver* const second_;
};

}  // namespace stepcast::server
