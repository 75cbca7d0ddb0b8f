// Metrics of the process, and of the certificates and files it reloads.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <vector>

namespace stepcast::server {

// Metrics of the process, read from /proc when they are asked for.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  // Leaves out what cannot be read. Threads: safe.
  std::vector<prometheus::MetricFamily> Collect() const override;
};

// Metrics of certificates and of reloads. Threads: safe.
class SecurityMetrics {
 public:
  // The registry must outlive it.
  explicit SecurityMetrics(prometheus::Registry& registry);

  void OnReload(bool done);
  void SetCertificateExpiry(int64_t unix_seconds);

 private:
  prometheus::Family<prometheus::Gauge>& expiry_;
  prometheus::Counter& reloads_done_;
  prometheus::Counter& reloads_failed_;
};

}  // namespace stepcast::server
