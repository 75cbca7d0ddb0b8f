// The credentials of a server: the contents of the files of SecurityOptions, read and checked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/app/server_options.h"
#include "server/security/certificate.h"
#include "server/security/principals.h"

namespace stepcast::server {

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

}  // namespace stepcast::server
