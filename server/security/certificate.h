// A check that certificates are fit to serve with, before a server relies on them.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace stepcast::server {

// A file of PEM blocks.
struct PemFile {
  std::string path;
  std::string text;
};

struct CertificateFiles {
  PemFile certificate;  // the server's own first, then what it was signed with
  PemFile key;
  PemFile
      client_ca;  // that clients' certificates must be signed by; empty path: none are asked for
};

struct CertificateFacts {
  std::string subject;
  int64_t expiry_unix_seconds = 0;  // the earliest of the chain
};

// INVALID_ARGUMENT, reason CERTIFICATE_INVALID, with the file and what is wrong with it: no
// certificate or key in it, an encrypted key, a key of another certificate, expired or not valid
// yet.
absl::StatusOr<CertificateFacts> CheckCertificates(const CertificateFiles& files,
                                                   int64_t now_unix_seconds);

}  // namespace stepcast::server
