#include "server/metrics/security_metrics.h"

#include "server/metrics/metric_names.h"

namespace stepcast::server {

namespace {

prometheus::Counter& Reloads(prometheus::Registry& registry, const char* outcome) {
  return prometheus::BuildCounter()
      .Name(metric::kReloads)
      .Help(
          "Readings of settings, certificates and tokens while serving; after a failed one what "
          "was there is in force.")
      .Register(registry)
      .Add({{"outcome", outcome}});
}

}  // namespace

SecurityMetrics::SecurityMetrics(prometheus::Registry& registry)
    : expiry_(prometheus::BuildGauge()
                  .Name(metric::kCertificateExpirySeconds)
                  .Help("When the first certificate of the server's chain expires, since the Unix "
                        "epoch; no series without TLS.")
                  .Register(registry)),
      reloads_done_(Reloads(registry, "ok")),
      reloads_failed_(Reloads(registry, "failed")) {}

void SecurityMetrics::OnReload(bool done) { (done ? reloads_done_ : reloads_failed_).Increment(); }

void SecurityMetrics::SetCertificateExpiry(int64_t unix_seconds) {
  expiry_.Add({}).Set(static_cast<double>(unix_seconds));
}

}  // namespace stepcast::server
