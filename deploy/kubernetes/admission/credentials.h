// The files that stepcast-admission trusts and is known by, read and checked: its own certificate,
// the client CA, and what it shows to stepcastd.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "deploy/kubernetes/admission/admission_options.h"
#include "deploy/kubernetes/admission/https_listener.h"
#include "server/security/certificate.h"
#include "stepcast/client_options.h"

namespace stepcast::admission {

struct Credentials {
  TlsIdentity identity;
  server::CertificateFacts facts;    // of the webhook's own certificate
  client::ClientCredentials client;  // for stepcastd
  std::string identity_text;         // all of `identity`, to see whether it has changed
  std::string client_text;           // the same of `client`
};

// INVALID_ARGUMENT, reason CERTIFICATE_INVALID or TOKEN_INVALID, with the file and what is wrong
// with it. Keys and tokens that any user of the system may read are wrong.
absl::StatusOr<Credentials> LoadCredentials(const AdmissionOptions& options,
                                            int64_t now_unix_seconds);

}  // namespace stepcast::admission
