// The security of a server that runs: its credentials and those whom it knows, as its files have
// them now, and the certificates it serves with.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/app/call_log.h"
#include "server/app/log.h"
#include "server/app/server_options.h"
#include "server/base/clock.h"
#include "server/metrics/server_metrics.h"
#include "server/rpc/call_gate.h"
#include "server/security/certificate.h"
#include "server/security/principals.h"

namespace stepcast::server {

// The credentials of a server: the contents of the files of SecurityOptions, read and checked.
struct Credentials {
  CertificateFiles certificates;                 // with empty paths where there is no TLS
  std::optional<CertificateFacts> facts;         // of the server's own certificate; none: no TLS
  std::shared_ptr<const Principals> principals;  // null: no tokens file
  std::string digest;                            // of all bytes that were read
};

// INVALID_ARGUMENT, reason CERTIFICATE_INVALID or TOKENS_INVALID, with file, line where there is
// one, and what is wrong. Keys and tokens that any user of the system may read are wrong.
absl::StatusOr<Credentials> LoadCredentials(const SecurityOptions& options,
                                            int64_t now_unix_seconds);

// OK if `listen`, HOST:PORT, may be served with these options: beyond loopback only over TLS and to
// known callers, unless that is allowed otherwise.
// INVALID_ARGUMENT, reason FLAG_INVALID, naming the address and what is missing; also for flags
// that do not go together.
absl::Status CheckExposure(const std::string& listen, const SecurityOptions& options);

// The certificates a gRPC server serves with, which can be replaced while it serves.
//
// gRPC 1.51 takes new certificates only from files that it watches, and serves none at all once it
// has read a bad one. So it watches files in memory that only this process sees, and these hold
// nothing that was not checked before. Threads: one at a time replaces; gRPC reads whenever it
// likes.
class TlsCertificates {
 public:
  // The time after Replace in which connections may still be made with what was there before.
  static constexpr int kDelaySeconds = 1;

  // UNAVAILABLE, reason TLS_FAILED, where the system has no such files. REQUIRES: the files were
  // checked.
  static absl::StatusOr<std::unique_ptr<TlsCertificates>> Create(const CertificateFiles& files);
  ~TlsCertificates();

  // TLS 1.2 or later; with a client CA, of the files it was created with, only clients with a
  // certificate of its.
  std::shared_ptr<grpc::ServerCredentials> Credentials() const;

  // For connections to come. After a failure what was there is in force. REQUIRES: the files were
  // checked; they have a client CA if the first had one.
  absl::Status Replace(const CertificateFiles& files);

 private:
  class MemoryFile;

  TlsCertificates();

  std::unique_ptr<MemoryFile>
      identity_;  // key and certificates, in one file lest they be of two generations
  std::unique_ptr<MemoryFile> client_ca_;  // null: none
};

// The security of a server that runs: its certificates and those it knows, as its files have them
// now.
//
// Threads: Reload and Refresh on one thread; the gate is safe.
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
