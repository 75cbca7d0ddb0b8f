#include "server/metrics/security_metrics.h"

#include <string>

#include "server/metrics/metric_names.h"

namespace stepcast::server {

namespace {

prometheus::Counter& Reloads(prometheus::Registry& registry, const char* outcome) {
  return prometheus::BuildCounter()
      .Name(metric::kReloads)
      .Help("Readings of settings, certificates and tokens while serving; after a failed one what was there is in force.")
      .Register(registry)
      .Add({{"outcome", outcome}});
}

}  // namespace

SecurityMetrics::SecurityMetrics(prometheus::Registry& registry)
    : expiry_(prometheus::BuildGauge()
                  .Name(metric::kCertificateExpirySeconds)
                  .Help("When the first certificate of the server's chain expires, since the Unix epoch; no series without TLS.")
                  .Register(registry)),
      reloads_done_(Reloads(registry, "ok")),
      reloads_failed_(Reloads(registry, "failed")) {
  prometheus::Family<prometheus::Counter>& family =
      prometheus::BuildCounter().Name(metric::kRejections).Help("Calls turned away, by the reason in their error.").Register(registry);
  for (const std::string_view reason :
       {std::string_view("CREDENTIALS_MISSING"), std::string_view("CREDENTIALS_MALFORMED"), std::string_view("TOKEN_UNKNOWN"),
        std::string_view("CERTIFICATE_UNKNOWN"), std::string_view("ROLE_TOO_LOW")}) {
    rejections_.emplace(reason, &family.Add({{"reason", std::string(reason)}}));
  }
}

void SecurityMetrics::OnRejected(std::string_view reason) {
  if (const auto found = rejections_.find(reason); found != rejections_.end()) found->second->Increment();
}

void SecurityMetrics::OnReload(bool done) { (done ? reloads_done_ : reloads_failed_).Increment(); }

void SecurityMetrics::SetCertificateExpiry(int64_t unix_seconds) { expiry_.Add({}).Set(static_cast<double>(unix_seconds)); }

}  // namespace stepcast::server
