// Metrics of one job pool, told apart from others by the label `pool`.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>

#include "server/jobs/job_pool.h"

namespace stepcast::server {

class JobMetrics final : public JobObserver {
 public:
  // The registry must outlive it.
  JobMetrics(prometheus::Registry& registry, const std::string& pool);

  void OnQueued(size_t queue_length) override;
  void OnRefused() override;
  void OnDropped() override;
  void OnStarted(size_t queue_length, double wait_seconds) override;
  void OnDone(double run_seconds) override;

 private:
  prometheus::Gauge& queue_length_;
  prometheus::Gauge& running_;
  prometheus::Counter& refused_;
  prometheus::Counter& dropped_;
  prometheus::Histogram& wait_seconds_;
  prometheus::Histogram& run_seconds_;
};

}  // namespace stepcast::server
