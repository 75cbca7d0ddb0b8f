#include "server/http/http_server.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "CivetServer.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

void Send(mg_connection* connection, const HttpReply& reply, bool with_body) {
  std::string head =
      absl::StrCat("HTTP/1.1 ", reply.code, " ", reply.reason, "\r\nContent-Type: ", reply.type,
                   "\r\nContent-Length: ", reply.body.size(),
                   "\r\nCache-Control: no-store\r\nConnection: close\r\n");
  for (const auto& [name, value] : reply.headers) absl::StrAppend(&head, name, ": ", value, "\r\n");
  absl::StrAppend(&head, "\r\n");
  mg_write(connection, head.data(), head.size());
  if (with_body) mg_write(connection, reply.body.data(), reply.body.size());
}

// A page that `make` makes anew for each request.
class Page final : public CivetHandler {
 public:
  explicit Page(std::function<HttpReply()> make) : make_(std::move(make)) {}

  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override {
    Send(connection, make_(), /*with_body=*/true);
    return true;
  }
  bool handleHead(CivetServer* /*server*/, mg_connection* connection) override {
    Send(connection, make_(), /*with_body=*/false);
    return true;
  }

 private:
  std::function<HttpReply()> make_;
};

// A page of what was asked. Other methods than GET and HEAD are refused before anything is made.
class AskedPage final : public CivetHandler {
 public:
  explicit AskedPage(std::function<HttpReply(const HttpRequest&)> make) : make_(std::move(make)) {}

  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override {
    Send(connection, make_(RequestOf(connection)), /*with_body=*/true);
    return true;
  }
  bool handleHead(CivetServer* /*server*/, mg_connection* connection) override {
    Send(connection, make_(RequestOf(connection)), /*with_body=*/false);
    return true;
  }
  bool handlePost(CivetServer* /*server*/, mg_connection* connection) override {
    return Refuse(connection);
  }
  bool handlePut(CivetServer* /*server*/, mg_connection* connection) override {
    return Refuse(connection);
  }
  bool handleDelete(CivetServer* /*server*/, mg_connection* connection) override {
    return Refuse(connection);
  }
  bool handleOptions(CivetServer* /*server*/, mg_connection* connection) override {
    return Refuse(connection);
  }
  bool handlePatch(CivetServer* /*server*/, mg_connection* connection) override {
    return Refuse(connection);
  }

 private:
  static HttpRequest RequestOf(mg_connection* connection) {
    const mg_request_info& info = *mg_get_request_info(connection);
    HttpRequest request;
    if (info.local_uri_raw != nullptr) request.path = info.local_uri_raw;
    if (info.query_string != nullptr) request.query = info.query_string;
    for (int i = 0; i < info.num_headers; ++i) {
      const mg_header& header = info.http_headers[i];
      if (absl::EqualsIgnoreCase(header.name, "authorization"))
        request.authorizations.emplace_back(header.value);
      if (absl::EqualsIgnoreCase(header.name, "host")) request.host = header.value;
    }
    return request;
  }

  static bool Refuse(mg_connection* connection) {
    Send(connection,
         {.code = 405,
          .reason = "Method Not Allowed",
          .headers = {{"Allow", "GET, HEAD"}},
          .body = "This page is read with GET or HEAD.\n"},
         /*with_body=*/true);
    return true;
  }

  std::function<HttpReply(const HttpRequest&)> make_;
};

HttpReply ReadyReply(const absl::Status& ready) {
  if (ready.ok()) return {.body = "ready\n"};
  return {.code = 503,
          .reason = "Service Unavailable",
          .body = absl::StrCat("not ready: ", ready.message(), "\n")};
}

// The pages that not every server has.
struct OptionalPages {
  bool reads = false;
  bool report = false;
};

HttpReply IndexReply(const std::string& program, const std::string& version,
                     const std::string& about, const OptionalPages& has) {
  return {
      .body = absl::StrCat(
          program, " ", version,
          "\n\n"
          "/metrics  measurements, for Prometheus\n"
          "/healthz  200 while the process answers\n"
          "/readyz   200 while it can serve, else 503 and why\n",
          has.reads ? "/readyz/reads  the same of what only reads: also with a full disk\n" : "",
          has.report ? "/report/profiles/PROFILE  a page on a stored profile's job\n" : "", "\n",
          about, ", on another port: see ", program, " --help.\n")};
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
          return HttpReply{.type = "text/plain; version=0.0.4; charset=utf-8", .body = make()};
        }),
        alive_([] { return HttpReply{.body = "ok\n"}; }),
        ready_([check = std::move(pages.ready)] { return ReadyReply(check()); }),
        has_reads_(pages.ready_to_read != nullptr),
        ready_to_read_([check = std::move(pages.ready_to_read)] { return ReadyReply(check()); }),
        index_([has_reads = has_reads_, program = std::move(pages.program),
                version = std::move(pages.version), about = std::move(pages.about),
                has_report = pages.report != nullptr] {
          return IndexReply(program, version, about, {.reads = has_reads, .report = has_report});
        }),
        has_report_(pages.report != nullptr),
        report_(std::move(pages.report)),
        server_(options) {
    server_.addHandler("/metrics$", metrics_);
    server_.addHandler("/healthz$", alive_);
    server_.addHandler("/readyz$", ready_);
    if (has_reads_) server_.addHandler("/readyz/reads$", ready_to_read_);
    server_.addHandler("/$", index_);
    if (has_report_) server_.addHandler("/report/", report_);
  }

  std::vector<int> Ports() { return server_.getListeningPorts(); }

 private:
  Page metrics_;
  Page alive_;
  Page ready_;
  const bool has_reads_;
  Page ready_to_read_;
  Page index_;
  const bool has_report_;
  AskedPage report_;
  CivetServer server_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              HttpPages pages) {
  // Each connection holds one until its request is there, or was not for so long: strangers who say
  // nothing must not hold up a probe.
  constexpr int kThreads = 32;
  const std::string threads = absl::StrCat(kThreads + pages.max_reports);
  const std::vector<std::string> options{
      "listening_ports",   address, "num_threads",      threads, "request_timeout_ms",       "3000",
      "enable_keep_alive", "no",    "max_request_size", "8192",  "enable_directory_listing", "no"};
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
