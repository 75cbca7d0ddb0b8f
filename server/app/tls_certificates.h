// The certificates a gRPC server serves with, which can be replaced while it serves.
//
// gRPC 1.51 takes new certificates only from files that it watches, and serves none at all once it
// has read a bad one. So it watches files in memory that only this process sees, and these hold
// nothing that was not checked before. Threads: one at a time replaces; gRPC reads whenever it
// likes.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/security/certificate.h"

namespace stepcast::server {

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

}  // namespace stepcast::server
