// Metrics of certificates and of reloads. Threads: safe.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>

namespace stepcast::server {

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
