// The options of a client: its server, credentials, time limit and retries.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace stepcast::client {

// The policy of making a failed call again.
//
// Only errors that say "not now" are retried: UNAVAILABLE, RESOURCE_EXHAUSTED if the server said
// when to come back (RetryInfo), and CANCELLED without a reason, which comes of a server that shuts
// down. The pause before retry k (from 0) is drawn uniformly from the upper half of [0,
// min(initial_backoff * multiplier^k, max_backoff)], so that clients that failed together do not
// come back together; a RetryInfo is added to it. A pause that would end after the call's deadline
// is not begun: the last error is returned at once.
struct RetryPolicy {
  int max_attempts = 5;  // the first one included; 1 or less: never retry
  std::chrono::nanoseconds initial_backoff = std::chrono::milliseconds(100);
  std::chrono::nanoseconds max_backoff = std::chrono::seconds(5);
  double multiplier = 2;
};

// The options of one call; an empty one is as in ClientOptions.
struct CallOptions {
  std::optional<std::chrono::nanoseconds> timeout;
  std::optional<RetryPolicy> retry;
};

// The certificates and the token of a client. All texts, no files; empty: none.
//
// A token without TLS is shown to a server on this machine only: calls to any other fail with
// FAILED_PRECONDITION, reason TOKEN_NEEDS_TLS, before it is sent.
struct ClientCredentials {
  bool use_tls = false;  // implied by root_certificates and certificate; without the former the
                         // system's are believed
  std::string root_certificates;  // PEM
  std::string certificate;  // PEM, the client's own, if the server asks for one; with private_key
  std::string private_key;  // PEM
  std::string token;        // shown with every call
};

struct ClientOptions {
  std::string server = "127.0.0.1:50051";  // HOST:PORT, or any gRPC target
  std::chrono::nanoseconds timeout =
      std::chrono::seconds(60);  // of a call, all its attempts and pauses together
  RetryPolicy retry;
  ClientCredentials credentials;
  size_t max_reply_bytes = size_t{1} << 30;  // a larger reply fails with RESOURCE_EXHAUSTED
};

}  // namespace stepcast::client
