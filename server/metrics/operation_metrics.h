// Metrics of long-running operations: how many there are in which state, how long the first waits,
// and what becomes of this replica's attempts.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <string_view>

#include "server/operations/operation_runner.h"
#include "server/store/operation_store.h"

namespace stepcast::server {

class OperationMetrics final : public OperationObserver {
 public:
  // The registry must outlive it.
  explicit OperationMetrics(prometheus::Registry& registry);

  void OnAttempt() override;
  void OnAttemptEnd(std::string_view outcome) override;

  // Asks the store, which all replicas share; keeps the old numbers where it fails. To be called
  // before metrics are read.
  void Refresh(OperationStore& store);

 private:
  prometheus::Family<prometheus::Gauge>& operations_;
  prometheus::Gauge& queue_age_;
  prometheus::Counter& attempts_;
  prometheus::Family<prometheus::Counter>& attempts_ended_;
};

}  // namespace stepcast::server
