// All metrics of one server, among them those of what it keeps, and their text.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

#include "server/base/bounded_cache.h"
#include "server/base/clock.h"
#include "server/metrics/call_metrics.h"
#include "server/metrics/process_metrics.h"
#include "server/metrics/work_metrics.h"
#include "server/store/disk.h"
#include "server/store/profile_store.h"
#include "server/store/profile_store_layers.h"

namespace stepcast::server {

// Metrics of the profile store: how long its operations take, by their outcome, and how many
// profiles it holds.
class StoreMetrics final : public StoreObserver {
 public:
  // The registry must outlive it.
  explicit StoreMetrics(prometheus::Registry& registry);

  void OnOperation(std::string_view operation, absl::StatusCode code, double seconds) override;

  // Counts the profiles of `store`, if one came or went through here since the last time, or if
  // that was kRecountNs ago, for others may share the store; keeps the old number where the store
  // fails. Cost: one read of all summaries. To be called before metrics are read.
  void Refresh(ProfileStore& store, const Clock& clock);

  // The disk below the store: true while writes are refused for want of room; how large it is, if
  // that is known. To be called before metrics are read.
  void SetDisk(bool is_full, const std::optional<DiskSpace>& space);

  static constexpr int64_t kRecountNs = 300'000'000'000;

 private:
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Gauge& profiles_;
  prometheus::Gauge& disk_full_;
  prometheus::Family<prometheus::Gauge>& disk_free_bytes_;
  prometheus::Family<prometheus::Gauge>& disk_bytes_;
  std::atomic<bool> changed_{true};
  std::atomic<int64_t> counted_ns_{0};
};

// Metrics of one cache.
class CacheMetrics final : public CacheObserver {
 public:
  // `cache` is its label. The registry must outlive it.
  CacheMetrics(prometheus::Registry& registry, const std::string& cache);

  void OnAsked(bool found) override;
  void OnChanged(int64_t entries, int64_t bytes, int64_t dropped) override;

 private:
  prometheus::Counter& hits_;
  prometheus::Counter& misses_;
  prometheus::Counter& dropped_;
  prometheus::Gauge& entries_;
  prometheus::Gauge& bytes_;
};

struct ServerMetricsOptions {
  std::vector<MethodLabels> methods;
  std::vector<SimulatingMethod> simulating_methods;  // names: of static storage
  std::string version;
  std::string engine_version;
  int64_t max_profiles = 0;
};

// All metrics of one server, and their text.
//
// Threads: safe. A value like any other: two servers in one process do not share any.
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
