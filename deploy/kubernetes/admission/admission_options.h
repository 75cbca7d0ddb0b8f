// The configuration of stepcast-admission: its options with their defaults, and their settings,
// which it takes as stepcastd does, by flags, environment and a file (server/app/settings.h).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "server/app/log.h"

namespace stepcast::admission {

// Most are flags of the same name.
struct AdmissionOptions {
  std::string listen = "127.0.0.1:8443";       // HOST:PORT, over TLS; port 0: any free one
  std::string http_listen = "127.0.0.1:9465";  // the same, in clear; empty: no pages
  std::string tls_cert;                        // files
  std::string tls_key;
  std::string tls_client_ca;  // empty: nobody is asked for a certificate
  bool allow_any_client = false;
  double reload_seconds = 10;  // between looks at all files; 0: none

  std::string server = "127.0.0.1:50051";  // the predictor
  std::string server_ca;                   // files; empty: in clear
  std::string server_cert;
  std::string server_key;
  std::string server_token_file;

  double wait_seconds = 1;  // for advice, of one review
  double call_timeout_seconds = 30;
  double keep_seconds = 300;  // of an answer
  double worker_hour = 0;     // prices, for the objective cost
  double node_hour = 0;
  std::string currency;
  double intra_bandwidth = 0;  // bytes per second inside a pod, where a job does not say; 0: none

  int64_t max_review_bytes = int64_t{8} << 20;
  int64_t max_pending_bytes = int64_t{64} << 20;
  int max_connections = 256;
  int threads = 16;
  double drain_delay_seconds = 0;
  double drain_timeout_seconds = 5;
  server::LogOptions log;

  std::vector<std::string> unknown_variables;  // of the environment; only logged
};

// Text that was asked for instead of a server: --help, --version, --check-config, --print-config.
struct PrintText {
  std::string text;
};

// INVALID_ARGUMENT, reason FLAG_INVALID or CONFIG_INVALID, with all that is wrong: unknown or
// unsound settings, no certificate, an address beyond this machine that anybody could call.
absl::StatusOr<std::variant<AdmissionOptions, PrintText>> ParseCommandLine(int argc,
                                                                           const char* const* argv);

}  // namespace stepcast::admission
