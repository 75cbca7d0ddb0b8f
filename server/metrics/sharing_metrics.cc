#include "server/metrics/sharing_metrics.h"

#include <string>

#include "server/handlers/simulation_observer.h"
#include "server/metrics/metric_names.h"

namespace stepcast::server {

namespace {

const char* NameOf(SharedFrom from) { return from == SharedFrom::kCache ? "cache" : "flight"; }

}  // namespace

SharingMetrics::SharingMetrics(prometheus::Registry& registry)
    : answers_(prometheus::BuildCounter()
                   .Name(metric::kSharedAnswers)
                   .Help("Calls that needed no computation of their own: an equal one had been "
                         "computed (cache) or was under way (flight).")
                   .Register(registry)) {
  for (const std::string_view method : kSimulatingMethods) {
    if (method == "GenerateTrace") continue;
    for (const SharedFrom from : {SharedFrom::kCache, SharedFrom::kFlight}) {
      answers_.Add({{"method", std::string(method)}, {"from", NameOf(from)}});
    }
  }
}

void SharingMetrics::OnShared(std::string_view method, SharedFrom from) {
  answers_.Add({{"method", std::string(method)}, {"from", NameOf(from)}}).Increment();
}

}  // namespace stepcast::server
