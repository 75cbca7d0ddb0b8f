// The flags that say how to reach a guarded server: --tls, --tls-ca, --tls-cert, --tls-key and
// --token-file.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "stepcast/client_options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stepcast::client {

class CredentialFlags {
 public:
  // The flags write into this object, which must outlive the application.
  void Declare(CLI::App& app);

  // The contents of the files. Where a flag was not given, STEPCAST_TLS_CA and STEPCAST_TOKEN_FILE
  // count. INVALID_ARGUMENT for a file that holds no token; else what reading fails with.
  absl::StatusOr<ClientCredentials> Read() const;

 private:
  bool use_tls_ = false;
  std::string tls_ca_;
  std::string tls_cert_;
  std::string tls_key_;
  std::string token_file_;
};

}  // namespace stepcast::client
