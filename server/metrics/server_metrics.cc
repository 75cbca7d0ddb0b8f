#include "server/metrics/server_metrics.h"

#include <prometheus/text_serializer.h>

#include <utility>

#include "server/metrics/metric_names.h"

namespace stepcast::server {

ServerMetrics::ServerMetrics(const ServerMetricsOptions& options)
    : registry_(prometheus::Registry::InsertBehavior::Merge),
      max_profiles_(prometheus::BuildGauge()
                        .Name(metric::kStoreProfilesMax)
                        .Help("Profiles that the store may hold.")
                        .Register(registry_)
                        .Add({})),
      calls(registry_, options.methods),
      simulation_jobs(registry_, "simulation"),
      store_jobs(registry_, "store"),
      store(registry_),
      operations(registry_),
      simulations(registry_, options.simulating_methods),
      sharing(registry_, options.simulating_methods),
      answer_cache(registry_, "answers"),
      run_cache(registry_, "runs"),
      profile_cache(registry_, "profiles"),
      decoded_cache(registry_, "decoded_profiles"),
      request_cache(registry_, "requests"),
      rejections(registry_),
      security(registry_) {
  prometheus::BuildGauge()
      .Name(metric::kBuildInfo)
      .Help("Always 1; the labels say what is running.")
      .Register(registry_)
      .Add({{"version", options.version}, {"engine_version", options.engine_version}})
      .Set(1);
  SetMaxProfiles(options.max_profiles);
}

std::string ServerMetrics::Text() const {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  for (prometheus::MetricFamily& family : process_.Collect()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace stepcast::server
