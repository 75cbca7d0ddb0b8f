// An HTTPS server for one kind of small requests: a body in, a body out.
//
// HTTP/1.1 over TLS 1.2 or later. Everything that a stranger may make large has a bound: header,
// body, bytes of all bodies under way, connections, and the time of handshake, request and answer.
// Threads: two of its own for all connections, and `handler_threads` that call the handler, which
// may block and must be safe. Lifetime: serves until destroyed, which waits for the handlers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepcast::admission {

// Certificate, key and client CA, in PEM form; the last empty where nobody is asked for one.
struct TlsIdentity {
  std::string certificate;
  std::string key;
  std::string client_ca;
};

struct HttpsListenerOptions {
  std::string address = "127.0.0.1:8443";  // HOST:PORT; port 0: any free one
  std::string path;                        // of the one resource, which takes POST alone
  size_t max_body_bytes = size_t{8} << 20;
  size_t max_pending_bytes = size_t{64} << 20;  // of all bodies under way
  int max_connections = 256;
  int handler_threads = 16;
  // Between two requests of a connection. Go's client drops idle connections after 90 seconds; were
  // they ended here before, a review might meet that end.
  std::chrono::milliseconds idle_timeout{120'000};
  std::chrono::milliseconds request_timeout{5'000};  // for a handshake, a request or a reply
};

struct HttpsReply {
  int code = 200;
  std::string type = "application/json";
  std::string body;
};

class HttpsListener {
 public:
  using Handler = std::function<HttpsReply(const std::string& body)>;
  // Hears the status code of every request that was answered. Must be safe and fast.
  using Observer = std::function<void(int code)>;

  // UNAVAILABLE, reason LISTEN_FAILED, if the address cannot be listened on; INVALID_ARGUMENT,
  // reason CERTIFICATE_INVALID, if OpenSSL does not take the identity.
  static absl::StatusOr<std::unique_ptr<HttpsListener>> Start(const HttpsListenerOptions& options,
                                                              const TlsIdentity& identity,
                                                              Handler handler, Observer observer);
  ~HttpsListener();

  // For connections to come; after a failure, as of Start, what was there stays in force. One
  // thread at a time.
  absl::Status Replace(const TlsIdentity& identity);

  // Takes no more connections, and ends them after their present request. Waits for those requests
  // at most so long.
  void Drain(std::chrono::milliseconds timeout);

  int port() const;

 private:
  class Impl;

  explicit HttpsListener(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace stepcast::admission
