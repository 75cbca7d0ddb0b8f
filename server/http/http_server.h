// The pages for machines that watch the service: /metrics for Prometheus, /healthz and /readyz for
// an orchestrator; and / for whoever looks what there is.
//
// GET and HEAD only. /healthz is 200 while the process can answer at all; /readyz is 200 while
// `ready` says OK and 503, with the reason, otherwise. Threads: has its own few; they call the
// pages' functions, which must be safe and may block shortly. Lifetime: serves until destroyed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepcast::server {

struct HttpPages {
  std::string version;  // of the server
  std::function<std::string()> metrics;
  std::function<absl::Status()> ready;
};

class HttpServer {
 public:
  // `address` is HOST:PORT, [HOST]:PORT for IPv6, port 0 for any free one. UNAVAILABLE, reason
  // LISTEN_FAILED, if it cannot be listened on.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address,
                                                           HttpPages pages);
  ~HttpServer();

  int port() const { return port_; }

 private:
  class Civet;

  HttpServer(std::unique_ptr<Civet> civet, int port);

  std::unique_ptr<Civet> civet_;
  const int port_;
};

}  // namespace stepcast::server
