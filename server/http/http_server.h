// The pages for machines that watch the service: /metrics for Prometheus, /healthz and /readyz for
// an orchestrator; and / for whoever looks what there is. And, where there is one, a page for
// people at /report/ and below.
//
// GET and HEAD only. /healthz is 200 while the process can answer at all; /readyz is 200 while
// `ready` says OK and 503, with the reason, otherwise; /readyz/reads likewise. Threads: has its own
// few; they call the pages' functions, which must be safe and may block shortly. Lifetime: serves
// until destroyed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepcast::server {

// A request for a page for people; nothing is checked.
struct HttpRequest {
  std::string path;   // unescaped, with its slashes, without the query
  std::string query;  // behind the question mark, as the client wrote it
  std::string host;
  std::vector<std::string> authorizations;  // each such header's value
};

struct HttpReply {
  int code = 200;
  std::string reason = "OK";
  std::string type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers = {};  // besides the usual ones
  std::string body = {};
  std::shared_ptr<void> held = nullptr;  // let go of once the reply was sent
};

struct HttpPages {
  std::string version;  // of the server
  std::string program = "stepcastd";
  std::string about = "Predictions are asked over gRPC";  // the other port, for /
  std::function<std::string()> metrics;
  std::function<absl::Status()> ready;
  // The same of reading alone. Empty: there is no such page.
  std::function<absl::Status()> ready_to_read = nullptr;
  // May block for long. Empty: there is no such page.
  std::function<HttpReply(const HttpRequest&)> report = nullptr;
  int max_reports = 0;  // that many may block at one time without holding up the other pages
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
