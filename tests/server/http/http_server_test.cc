#include "server/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "core/base/error.h"

namespace stepcast::server::http_server_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The whole reply to a request line.
std::string Ask(int port, const std::string& request_line, const std::string& headers = "") {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, static_cast<const sockaddr*>(static_cast<const void*>(&address)),
                    sizeof(address)),
            0);
  const std::string request =
      request_line + " HTTP/1.1\r\nHost: x\r\n" + headers + "Connection: close\r\n\r\n";
  EXPECT_EQ(send(fd, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::string reply;
  char block[4096];
  for (ssize_t size = 0; (size = recv(fd, block, sizeof(block), 0)) > 0;)
    reply.append(block, static_cast<size_t>(size));
  close(fd);
  return reply;
}

class HttpServerTest : public ::testing::Test {
 protected:
  static HttpPages Pages() {
    return {
        .version = "1.2.3",
        .metrics = [] { return std::string("some_metric 1\n"); },
        .ready =
            [] { return ready_ ? absl::OkStatus() : absl::UnavailableError("the store is gone"); }};
  }
  static void SetUpTestSuite() {
    ready_ = true;
    auto started = HttpServer::Start("127.0.0.1:0", Pages());
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = std::move(*started);
  }
  static void TearDownTestSuite() { server_.reset(); }
  static std::string Ask(const std::string& request_line) {
    return http_server_test::Ask(server_->port(), request_line);
  }

  // One for all: it takes up to two seconds to stop.
  static std::unique_ptr<HttpServer> server_;
  static std::atomic<bool> ready_;
};

std::unique_ptr<HttpServer> HttpServerTest::server_;
std::atomic<bool> HttpServerTest::ready_{true};

TEST_F(HttpServerTest, MetricsAreInTheFormatPrometheusReads) {
  const std::string reply = Ask("GET /metrics");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\nsome_metric 1\n"));
}

TEST_F(HttpServerTest, HealthIsOkWhateverReadinessSays) {
  ready_ = false;
  EXPECT_THAT(Ask("GET /healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  ready_ = true;
}

TEST_F(HttpServerTest, ReadinessFollowsTheServer) {
  EXPECT_THAT(Ask("GET /readyz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  ready_ = false;
  const std::string reply = Ask("GET /readyz");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(reply, HasSubstr("the store is gone"));
  ready_ = true;
}

TEST_F(HttpServerTest, HeadHasNoBody) {
  const std::string reply = Ask("HEAD /metrics");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, Not(HasSubstr("some_metric")));
}

TEST_F(HttpServerTest, TheFirstPageSaysWhatThereIs) {
  const std::string reply = Ask("GET /");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
  for (const char* part : {"\r\n\r\nstepcastd 1.2.3\n", "\n/metrics ", "\n/healthz ", "\n/readyz "})
    EXPECT_THAT(reply, HasSubstr(part));
  const std::string head = Ask("HEAD /");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, NothingElseIsThere) {
  EXPECT_THAT(Ask("GET /etc/passwd"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("GET /metrics/more"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("POST /metrics"), StartsWith("HTTP/1.1 404"));
}

TEST_F(HttpServerTest, WithoutAReportThereIsNoSuchPage) {
  EXPECT_THAT(Ask("GET /report/profiles/a"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("GET /"), Not(HasSubstr("/report")));
}

TEST(HttpReportTest, HandsOnWhatWasAskedAndSendsWhatWasMade) {
  std::vector<HttpRequest> asked;
  HttpPages pages{.version = "1",
                  .metrics = [] { return std::string(); },
                  .ready = [] { return absl::OkStatus(); },
                  .report =
                      [&asked](const HttpRequest& request) {
                        asked.push_back(request);
                        return HttpReply{.code = 418,
                                         .reason = "Teapot",
                                         .type = "text/html",
                                         .headers = {{"X-Of-The-Page", "yes"}},
                                         .body = "<p>"};
                      },
                  .max_reports = 1};
  auto server = HttpServer::Start("127.0.0.1:0", std::move(pages));
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->port();
  const std::string reply = Ask(port, "GET /report/profiles/a%2Db?x=%31&y",
                                "authorization: Bearer one\r\nAUTHORIZATION: two\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 418 Teapot\r\nContent-Type: text/html\r\n"));
  EXPECT_THAT(reply, HasSubstr("\r\nX-Of-The-Page: yes\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n<p>"));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].path, "/report/profiles/a-b");
  EXPECT_EQ(asked[0].query, "x=%31&y");
  EXPECT_EQ(asked[0].host, "x");
  EXPECT_EQ(asked[0].authorizations, (std::vector<std::string>{"Bearer one", "two"}));
  EXPECT_THAT(Ask(port, "HEAD /report/profiles/a"), EndsWith("\r\n\r\n"));
  EXPECT_EQ(asked.size(), 2U);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    const std::string refusal = Ask(port, std::string(method) + " /report/profiles/a");
    EXPECT_THAT(refusal, StartsWith("HTTP/1.1 405 ")) << method;
    EXPECT_THAT(refusal, HasSubstr("\r\nAllow: GET, HEAD\r\n")) << method;
  }
  EXPECT_EQ(asked.size(), 2U);
  EXPECT_THAT(Ask(port, "GET /reporters"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask(port, "GET /"), HasSubstr("/report/profiles/"));
}

TEST_F(HttpServerTest, ABusyPortSaysSo) {
  const absl::Status status =
      HttpServer::Start("127.0.0.1:" + std::to_string(server_->port()), Pages()).status();
  EXPECT_EQ(DetailsOf(status).reason, "LISTEN_FAILED");
  EXPECT_THAT(std::string(status.message()), HasSubstr("in use"));
}

}  // namespace
}  // namespace stepcast::server::http_server_test
