// The security of a server that runs: its certificates and those it knows, as its files have them
// now.
//
// Threads: Reload and Refresh on one thread; the gate is safe.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/app/call_log.h"
#include "server/app/credentials.h"
#include "server/app/log.h"
#include "server/base/clock.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/call_gate.h"

namespace stepcast::server {

class ServerSecurity {
 public:
  // Borrows log, metrics and clock. Fails as LoadCredentials and TlsCertificates::Create do.
  static absl::StatusOr<std::unique_ptr<ServerSecurity>> Create(const SecurityOptions& options,
                                                                Log& log, ServerMetrics& metrics,
                                                                const Clock& clock);

  CallGate& gate() { return gate_; }
  // In clear without a certificate.
  std::shared_ptr<grpc::ServerCredentials> ListenerCredentials() const;

  // Reads the files of `options`, which replace those there were. After a failure all is as it was.
  // FAILED_PRECONDITION, reason RESTART_NEEDED: TLS, or asking for clients' certificates, cannot be
  // turned on or off while serving.
  absl::Status Reload(const SecurityOptions& options);

  // Reads the files again if they have changed, and logs and counts what came of it; a failure
  // once. Warns daily of a certificate that expires soon.
  void Refresh();

 private:
  ServerSecurity(Log& log, ServerMetrics& metrics, const Clock& clock);

  absl::StatusOr<Credentials> Load(const SecurityOptions& options) const;
  void Use(const Credentials& credentials);
  void WarnOfExpiry();

  Log& log_;
  SecurityMetrics& metrics_;
  const Clock& clock_;
  RejectionLog rejections_;
  GuardedGate gate_;
  SecurityOptions options_;
  std::string digest_;  // of what is in force
  std::string failed_;  // the failure logged last; empty since a success
  std::optional<CertificateFacts> facts_;
  int64_t warned_day_ = 0;
  std::unique_ptr<TlsCertificates> certificates_;  // null: in clear
};

}  // namespace stepcast::server
