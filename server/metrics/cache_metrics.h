// Metrics of one cache.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <string>

#include "server/base/bounded_cache.h"

namespace stepcast::server {

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
