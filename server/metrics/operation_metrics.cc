#include "server/metrics/operation_metrics.h"

#include <string>

#include "server/metrics/metric_names.h"

namespace stepcast::server {

namespace {

// By OperationState.
constexpr const char* kStateNames[kOperationStates] = {"queued", "running",   "succeeded",
                                                       "failed", "cancelled", "exhausted"};

}  // namespace

OperationMetrics::OperationMetrics(prometheus::Registry& registry)
    : operations_(prometheus::BuildGauge()
                      .Name(metric::kOperations)
                      .Help("Operations in the store, which all replicas share, by state.")
                      .Register(registry)),
      queue_age_(
          prometheus::BuildGauge()
              .Name(metric::kOperationQueueAge)
              .Help("How long the operation that waits the longest has waited; 0: none does.")
              .Register(registry)
              .Add({})),
      attempts_(prometheus::BuildCounter()
                    .Name(metric::kOperationAttempts)
                    .Help("Operations this replica has begun to compute.")
                    .Register(registry)
                    .Add({})),
      attempts_ended_(prometheus::BuildCounter()
                          .Name(metric::kOperationAttemptsEnded)
                          .Help("What became of those it has begun.")
                          .Register(registry)) {
  for (const char* state : kStateNames) operations_.Add({{"state", state}});
  for (const std::string_view outcome : kAttemptOutcomes)
    attempts_ended_.Add({{"outcome", std::string(outcome)}});
}

void OperationMetrics::OnAttempt() { attempts_.Increment(); }

void OperationMetrics::OnAttemptEnd(std::string_view outcome) {
  attempts_ended_.Add({{"outcome", std::string(outcome)}}).Increment();
}

void OperationMetrics::Refresh(OperationStore& store) {
  const absl::StatusOr<OperationCounts> counts = store.Count();
  if (!counts.ok()) return;
  for (int state = 0; state < kOperationStates; ++state) {
    operations_.Add({{"state", kStateNames[state]}})
        .Set(static_cast<double>(counts->by_state[state]));
  }
  queue_age_.Set(static_cast<double>(counts->oldest_queued_ns) * 1e-9);
}

}  // namespace stepcast::server
