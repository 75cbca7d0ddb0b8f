// Metrics of the profile store: how long its operations take, by their outcome, and how many
// profiles it holds.
#pragma once

#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <atomic>
#include <string_view>

#include "absl/status/status.h"

#include "server/base/clock.h"
#include "server/store/observed_profile_store.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

class StoreMetrics final : public StoreObserver {
 public:
  // The registry must outlive it.
  explicit StoreMetrics(prometheus::Registry& registry);

  void OnOperation(std::string_view operation, absl::StatusCode code, double seconds) override;

  // Counts the profiles of `store`, if one came or went through here since the last time, or if
  // that was kRecountNs ago, for others may share the store; keeps the old number where the store
  // fails. Cost: one read of all summaries. To be called before metrics are read.
  void Refresh(ProfileStore& store, const Clock& clock);

  static constexpr int64_t kRecountNs = 300'000'000'000;

 private:
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Gauge& profiles_;
  std::atomic<bool> changed_{true};
  std::atomic<int64_t> counted_ns_{0};
};

}  // namespace stepcast::server
