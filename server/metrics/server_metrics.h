// All metrics of one server, and their text.
//
// Threads: safe. A value like any other: two servers in one process do not share any.
#pragma once

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/metrics/call_metrics.h"
#include "server/metrics/process_metrics.h"
#include "server/metrics/store_metrics.h"
#include "server/metrics/work_metrics.h"

namespace stepcast::server {

struct ServerMetricsOptions {
  std::vector<MethodLabels> methods;
  std::vector<SimulatingMethod> simulating_methods;  // names: of static storage
  std::string version;
  std::string engine_version;
  int64_t max_profiles = 0;
};

class ServerMetrics {
 public:
  explicit ServerMetrics(const ServerMetricsOptions& options);

  // The most profiles that the store may hold from now on.
  void SetMaxProfiles(int64_t max_profiles) {
    max_profiles_.Set(static_cast<double>(max_profiles));
  }

  // In the Prometheus text format 0.0.4.
  std::string Text() const;

 private:
  prometheus::Registry registry_;
  ProcessMetrics process_;
  prometheus::Gauge& max_profiles_;

 public:
  CallMetrics calls;
  JobMetrics simulation_jobs;
  JobMetrics store_jobs;
  StoreMetrics store;
  OperationMetrics operations;
  SimulationMetrics simulations;
  SharingMetrics sharing;
  CacheMetrics answer_cache;
  CacheMetrics run_cache;
  CacheMetrics profile_cache;  // as they were read
  CacheMetrics decoded_cache;  // profiles as they are computed with
  CacheMetrics request_cache;
  RejectionMetrics rejections;
  SecurityMetrics security;
};

}  // namespace stepcast::server
