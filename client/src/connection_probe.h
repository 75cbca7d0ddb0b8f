// A look at a server that could not be reached: why, as far as that can be known for sure.
//
// gRPC's own words for a server that speaks TLS, one that does not, and one whose certificate is
// not believed are alike, or of its inside. So the server is asked once more, by a connection of
// the probe's own: with a TLS greeting where the client speaks in clear, with the client's
// credentials where it speaks TLS.
//
// Threads: safe. Cost: one connection, at most `patience`, looking the name up apart.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"

#include "stepcast/client_options.h"

namespace stepcast::client {

struct ProbeTarget {
  std::string host;
  std::string port;
};

// The server that a gRPC target names: HOST:PORT, [HOST]:PORT, and these after `dns:`, `ipv4:` and
// `ipv6:`. None for any other, which only gRPC can resolve.
std::optional<ProbeTarget> ProbeTargetOf(const std::string& target);

// OK: nothing is known, the server may be there now. Otherwise with ErrorInfo:
//   UNAVAILABLE, reason SERVER_UNREACHABLE: nobody answers there
//   FAILED_PRECONDITION, which no repetition changes: SERVER_SPEAKS_TLS, SERVER_SPEAKS_NO_TLS,
//     SERVER_SPEAKS_NO_GRPC, SERVER_CERTIFICATE_UNTRUSTED, SERVER_CERTIFICATE_EXPIRED,
//     SERVER_NAME_MISMATCH (metadata `names`: those in its certificate),
//     CLIENT_CERTIFICATE_MISSING, CLIENT_CERTIFICATE_REFUSED, CLIENT_CREDENTIALS_INVALID (ours
//     cannot be used), TOKEN_NEEDS_TLS
absl::Status ProbeServer(const ProbeTarget& target, const ClientCredentials& credentials,
                         std::chrono::nanoseconds patience);

// The causes of a client's calls that reached nobody.
//
// A cause is known for a second, so that many calls at once make one probe. Where calls go by a
// proxy (gRPC's environment variables), which a probe would not, nothing is known. Threads: safe.
class UnreachableServer {
 public:
  explicit UnreachableServer(const ClientOptions& options);

  // `status` as it is, or what is known of a failure that gRPC itself found: UNAVAILABLE without
  // details. `left`: of the call's time.
  absl::Status Explain(const absl::Status& status, std::chrono::nanoseconds left);

 private:
  const std::string server_;
  const std::optional<ProbeTarget> target_;
  const ClientCredentials credentials_;
  std::mutex mutex_;
  absl::Status known_;                                 // guarded by mutex_
  std::chrono::steady_clock::time_point known_until_;  // guarded by mutex_
};

}  // namespace stepcast::client
