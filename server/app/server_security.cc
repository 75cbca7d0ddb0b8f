#include "server/app/server_security.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

constexpr int64_t kSecondsPerDay = 86'400;
constexpr int64_t kWarnDays = 14;

int64_t UnixSeconds(const Clock& clock) { return clock.WallNs() / kNsPerSecond; }

absl::Status RestartNeeded(const char* flag) {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat(flag, " cannot be turned on or off while serving"),
                   {.reason = "RESTART_NEEDED"});
}

}  // namespace

ServerSecurity::ServerSecurity(Log& log, ServerMetrics& metrics, const Clock& clock)
    : log_(log),
      metrics_(metrics.security),
      clock_(clock),
      rejections_(log, metrics.rejections, clock),
      gate_(rejections_) {}

absl::StatusOr<std::unique_ptr<ServerSecurity>> ServerSecurity::Create(
    const SecurityOptions& options, Log& log, ServerMetrics& metrics, const Clock& clock) {
  std::unique_ptr<ServerSecurity> security(new ServerSecurity(log, metrics, clock));
  absl::StatusOr<Credentials> credentials = security->Load(options);
  if (!credentials.ok()) return credentials.status();
  if (credentials->facts) {
    absl::StatusOr<std::unique_ptr<TlsCertificates>> certificates =
        TlsCertificates::Create(credentials->certificates);
    if (!certificates.ok()) return certificates.status();
    security->certificates_ = *std::move(certificates);
  }
  security->options_ = options;
  security->Use(*credentials);
  return security;
}

std::shared_ptr<grpc::ServerCredentials> ServerSecurity::ListenerCredentials() const {
  return certificates_ == nullptr ? grpc::InsecureServerCredentials()
                                  : certificates_->Credentials();
}

absl::Status ServerSecurity::Reload(const SecurityOptions& options) {
  if (options.tls_cert.empty() != options_.tls_cert.empty()) return RestartNeeded("--tls-cert");
  if (options.tls_client_ca.empty() != options_.tls_client_ca.empty())
    return RestartNeeded("--tls-client-ca");
  absl::StatusOr<Credentials> credentials = Load(options);
  if (!credentials.ok()) return credentials.status();
  if (certificates_ != nullptr) {
    if (absl::Status status = certificates_->Replace(credentials->certificates); !status.ok())
      return status;
  }
  options_ = options;
  Use(*credentials);
  return absl::OkStatus();
}

void ServerSecurity::Refresh() {
  WarnOfExpiry();
  const absl::StatusOr<Credentials> credentials = Load(options_);
  if (credentials.ok() && credentials->digest == digest_) {
    failed_.clear();
    return;
  }
  const absl::Status status = credentials.ok() ? Reload(options_) : credentials.status();
  const std::string failed(status.message());
  if (!status.ok() && std::exchange(failed_, failed) == failed) return;
  metrics_.OnReload(status.ok());
  if (!status.ok()) return log_.Error("credentials not reloaded", {{"why", failed}});
  log_.Info("credentials reloaded");
}

absl::StatusOr<Credentials> ServerSecurity::Load(const SecurityOptions& options) const {
  return LoadCredentials(options, UnixSeconds(clock_));
}

void ServerSecurity::Use(const Credentials& credentials) {
  gate_.SetPrincipals(credentials.principals);
  digest_ = credentials.digest;
  failed_.clear();
  facts_ = credentials.facts;
  if (!facts_) return;
  metrics_.SetCertificateExpiry(facts_->expiry_unix_seconds);
  warned_day_ = 0;
  WarnOfExpiry();
}

void ServerSecurity::WarnOfExpiry() {
  if (!facts_) return;
  const int64_t now = UnixSeconds(clock_);
  const int64_t left = facts_->expiry_unix_seconds - now;
  if (left > kWarnDays * kSecondsPerDay ||
      std::exchange(warned_day_, now / kSecondsPerDay) == now / kSecondsPerDay)
    return;
  log_.Warning("certificate expires soon",
               {{"subject", facts_->subject}, {"days_left", absl::StrCat(left / kSecondsPerDay)}});
}

}  // namespace stepcast::server
