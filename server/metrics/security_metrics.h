// Metrics of who was turned away, of certificates and of reloads.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <string_view>

namespace stepcast::server {

class SecurityMetrics {
 public:
  // The registry must outlive it.
  explicit SecurityMetrics(prometheus::Registry& registry);

  // `reason` is an error's: one of those of GuardedGate. Threads: safe, as all of these.
  void OnRejected(std::string_view reason);
  void OnReload(bool done);
  void SetCertificateExpiry(int64_t unix_seconds);

 private:
  prometheus::Family<prometheus::Gauge>& expiry_;
  std::map<std::string_view, prometheus::Counter*> rejections_;  // unchanged after construction
  prometheus::Counter& reloads_done_;
  prometheus::Counter& reloads_failed_;
};

}  // namespace stepcast::server
