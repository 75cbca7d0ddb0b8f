#include "server/metrics/rejection_metrics.h"

#include "server/metrics/metric_names.h"

namespace stepcast::server {

RejectionMetrics::RejectionMetrics(prometheus::Registry& registry) {
  auto& family = prometheus::BuildCounter()
                     .Name(metric::kRejections)
                     .Help("Calls turned away, by the reason in their error.")
                     .Register(registry);
  for (const std::string_view reason : kRejectionReasons) {
    by_reason_.emplace(reason, &family.Add({{"reason", std::string(reason)}}));
  }
}

void RejectionMetrics::OnFailure(std::string_view reason) {
  const auto at = by_reason_.find(reason);
  if (at != by_reason_.end()) at->second->Increment();
}

}  // namespace stepcast::server
