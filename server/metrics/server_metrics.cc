#include "server/metrics/server_metrics.h"

#include <prometheus/text_serializer.h>

#include <cstdint>
#include <string>
#include <utility>

#include "server/metrics/call_metrics.h"
#include "server/metrics/metric_names.h"

namespace stepcast::server {

namespace {

constexpr int kPageSize = 1000;

prometheus::Histogram::BucketBoundaries StoreBuckets() {
  return {0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5};
}

}  // namespace

StoreMetrics::StoreMetrics(prometheus::Registry& registry)
    : seconds_(prometheus::BuildHistogram()
                   .Name(metric::kStoreOperationSeconds)
                   .Help("Time an operation of the profile store took, by its status code.")
                   .Register(registry)),
      profiles_(prometheus::BuildGauge()
                    .Name(metric::kStoreProfiles)
                    .Help("Profiles in the store.")
                    .Register(registry)
                    .Add({})),
      disk_full_(prometheus::BuildGauge()
                     .Name(metric::kStoreDiskFull)
                     .Help("1 while the store refuses writes because its disk is full.")
                     .Register(registry)
                     .Add({})),
      disk_free_bytes_(prometheus::BuildGauge()
                           .Name(metric::kStoreDiskFreeBytes)
                           .Help("Free on the disk of the data directory, beside the reserve.")
                           .Register(registry)),
      disk_bytes_(prometheus::BuildGauge()
                      .Name(metric::kStoreDiskBytes)
                      .Help("Size of the disk of the data directory.")
                      .Register(registry)) {
  for (const std::string_view operation : kStoreOperations)
    seconds_.Add({{"operation", std::string(operation)}, {"code", "OK"}}, StoreBuckets());
}

void StoreMetrics::OnOperation(std::string_view operation, absl::StatusCode code, double seconds) {
  const std::string code_name(CodeName(static_cast<int>(code)));
  seconds_.Add({{"operation", std::string(operation)}, {"code", code_name}}, StoreBuckets())
      .Observe(seconds);
  if (code == absl::StatusCode::kOk &&
      (operation == "put" || operation == "replace" || operation == "delete"))
    changed_ = true;
}

void StoreMetrics::SetDisk(bool is_full, const std::optional<DiskSpace>& space) {
  disk_full_.Set(is_full ? 1 : 0);
  if (!space) return;
  disk_free_bytes_.Add({}).Set(static_cast<double>(space->free_bytes));
  disk_bytes_.Add({}).Set(static_cast<double>(space->total_bytes));
}

void StoreMetrics::Refresh(ProfileStore& store, const Clock& clock) {
  const int64_t now_ns = clock.MonotonicNs();
  const bool is_old = now_ns - counted_ns_ >= kRecountNs;
  if (!changed_.exchange(false) && !is_old) return;
  int64_t count = 0;
  ListQuery query{.limit = kPageSize};
  for (bool more = true; more;) {
    const absl::StatusOr<ProfilePage> page = store.List(query);
    if (!page.ok()) {
      changed_ = true;
      return;
    }
    count += static_cast<int64_t>(page->profiles.size());
    more = page->more && !page->profiles.empty();
    if (more) query.after = page->profiles.back().id;
  }
  counted_ns_ = now_ns;
  profiles_.Set(static_cast<double>(count));
}

namespace {

prometheus::Counter& Counter(prometheus::Registry& registry, const char* name, const char* help,
                             const prometheus::Labels& labels) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
}

prometheus::Gauge& Gauge(prometheus::Registry& registry, const char* name, const char* help,
                         const prometheus::Labels& labels) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
}

constexpr char kLookupsHelp[] = "Times a cache was asked, by whether it had it.";

}  // namespace

CacheMetrics::CacheMetrics(prometheus::Registry& registry, const std::string& cache)
    : hits_(Counter(registry, metric::kCacheLookups, kLookupsHelp,
                    {{"cache", cache}, {"result", "hit"}})),
      misses_(Counter(registry, metric::kCacheLookups, kLookupsHelp,
                      {{"cache", cache}, {"result", "miss"}})),
      dropped_(Counter(registry, metric::kCacheEvictions, "Entries that had to go to make room.",
                       {{"cache", cache}})),
      entries_(Gauge(registry, metric::kCacheEntries, "Entries of a cache.", {{"cache", cache}})),
      bytes_(
          Gauge(registry, metric::kCacheBytes, "Bytes that a cache holds.", {{"cache", cache}})) {}

void CacheMetrics::OnAsked(bool found) { (found ? hits_ : misses_).Increment(); }

void CacheMetrics::OnChanged(int64_t entries, int64_t bytes, int64_t dropped) {
  entries_.Increment(static_cast<double>(entries));
  bytes_.Increment(static_cast<double>(bytes));
  dropped_.Increment(static_cast<double>(dropped));
}

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
