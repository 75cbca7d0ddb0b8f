// Metrics of the profile store: how long its operations take, by their outcome, and how many profiles it holds.
#pragma once

#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <atomic>
#include <string_view>

#include "absl/status/status.h"

#include "server/store/observed_profile_store.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

class StoreMetrics final : public StoreObserver {
 public:
  // The registry must outlive it.
  explicit StoreMetrics(prometheus::Registry& registry);

  void OnOperation(std::string_view operation, absl::StatusCode code, double seconds) override;

  // Counts the profiles of `store`, if any may have come or gone since the last time; keeps the old number where the store fails.
  // Cost: the first time, and after a change, one read of all summaries. To be called before metrics are read.
  void Refresh(ProfileStore& store);

 private:
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Gauge& profiles_;
  std::atomic<bool> changed_{true};
};

}  // namespace stepcast::server
