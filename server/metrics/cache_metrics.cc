#include "server/metrics/cache_metrics.h"

#include "server/metrics/metric_names.h"

namespace stepcast::server {

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

}  // namespace stepcast::server
