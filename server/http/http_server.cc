#include "server/http/http_server.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "CivetServer.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

struct Reply {
  int code = 200;
  const char* reason = "OK";
  const char* type = "text/plain; charset=utf-8";
  std::string body;
};

// A page that `make` makes anew for each request.
class Page final : public CivetHandler {
 public:
  explicit Page(std::function<Reply()> make) : make_(std::move(make)) {}

  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override {
    return Write(connection, /*with_body=*/true);
  }
  bool handleHead(CivetServer* /*server*/, mg_connection* connection) override {
    return Write(connection, /*with_body=*/false);
  }

 private:
  bool Write(mg_connection* connection, bool with_body) const {
    const Reply reply = make_();
    const std::string head =
        absl::StrCat("HTTP/1.1 ", reply.code, " ", reply.reason, "\r\nContent-Type: ", reply.type,
                     "\r\nContent-Length: ", reply.body.size(),
                     "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n");
    mg_write(connection, head.data(), head.size());
    if (with_body) mg_write(connection, reply.body.data(), reply.body.size());
    return true;
  }

  std::function<Reply()> make_;
};

Reply ReadyReply(const absl::Status& ready) {
  if (ready.ok()) return {.body = "ready\n"};
  return {.code = 503,
          .reason = "Service Unavailable",
          .body = absl::StrCat("not ready: ", ready.message(), "\n")};
}

Reply IndexReply(const std::string& version) {
  return {.body = absl::StrCat(
              "stepcastd ", version,
              "\n\n"
              "/metrics  measurements, for Prometheus\n"
              "/healthz  200 while the process answers\n"
              "/readyz   200 while it can serve, else 503 and why\n\n"
              "Predictions are asked over gRPC, on another port: see stepcastd --help.\n")};
}

absl::Status ListenError(const std::string& address, std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable,
                   absl::StrCat("cannot listen for HTTP on ", address, ": ",
                                absl::string_view(why.data(), why.size())),
                   {.reason = "LISTEN_FAILED", .metadata = {{"address", address}}});
}

}  // namespace

// Member order is lifetime: the pages outlive the threads that serve them.
class HttpServer::Civet {
 public:
  Civet(const std::vector<std::string>& options, HttpPages pages)
      : metrics_([make = std::move(pages.metrics)] {
          return Reply{.type = "text/plain; version=0.0.4; charset=utf-8", .body = make()};
        }),
        alive_([] { return Reply{.body = "ok\n"}; }),
        ready_([check = std::move(pages.ready)] { return ReadyReply(check()); }),
        index_([version = std::move(pages.version)] { return IndexReply(version); }),
        server_(options) {
    server_.addHandler("/metrics$", metrics_);
    server_.addHandler("/healthz$", alive_);
    server_.addHandler("/readyz$", ready_);
    server_.addHandler("/$", index_);
  }

  std::vector<int> Ports() { return server_.getListeningPorts(); }

 private:
  Page metrics_;
  Page alive_;
  Page ready_;
  Page index_;
  CivetServer server_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              HttpPages pages) {
  const std::vector<std::string> options{
      "listening_ports",   address, "num_threads",      "4",    "request_timeout_ms",       "5000",
      "enable_keep_alive", "no",    "max_request_size", "8192", "enable_directory_listing", "no"};
  // The library reports a failed start by an exception, and what the system said in errno.
  try {
    errno = 0;
    auto civet = std::make_unique<Civet>(options, std::move(pages));
    const std::vector<int> ports = civet->Ports();
    if (ports.empty()) return ListenError(address, "no port");
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(civet), ports.front()));
  } catch (const CivetException& exception) {
    return ListenError(address, errno == 0 ? exception.what() : std::strerror(errno));
  }
}

HttpServer::HttpServer(std::unique_ptr<Civet> civet, int port)
    : civet_(std::move(civet)), port_(port) {}

HttpServer::~HttpServer() = default;

}  // namespace stepcast::server
