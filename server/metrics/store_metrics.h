// Metrics of what is kept: profiles in the store, and entries of caches.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "server/base/bounded_cache.h"
#include "server/base/clock.h"
#include "server/store/disk_space.h"
#include "server/store/observed_profile_store.h"
#include "server/store/profile_store.h"

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

  // Of the disk below the store: true while writes are refused for want of room; how large it is,
  // if that is known. To be called before metrics are read.
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

}  // namespace stepcast::server
