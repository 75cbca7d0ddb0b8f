#include "server/app/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/error.h"
#include "server/convert/profile_convert.h"
#include "tests/server/app/test_server.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server::server_test {
namespace {

using ::testing::HasSubstr;

TEST(ServerTest, ABusyPortIsABrokenStartThatSaysWhy) {
  TestServer first;
  ServerOptions options = TestOptions();
  options.listen = first.server().grpc_address();
  const absl::Status status = Server::Start(options).status();
  EXPECT_EQ(DetailsOf(status).reason, "LISTEN_FAILED");
  EXPECT_THAT(std::string(status.message()), HasSubstr(options.listen));
  EXPECT_THAT(std::string(status.message()), HasSubstr("in use"));
}

TEST(ServerTest, ABusyPortForPagesIsABrokenStartToo) {
  TestServer first;
  ServerOptions options = TestOptions();
  options.http_listen = first.server().grpc_address();
  EXPECT_EQ(DetailsOf(Server::Start(options).status()).reason, "LISTEN_FAILED");
}

TEST(ServerTest, ADirectoryThatCannotBeIsABrokenStart) {
  ServerOptions options = TestOptions();
  options.store = StoreKind::kSqlite;
  options.data_dir = "/proc/nowhere";
  EXPECT_FALSE(Server::Start(options).ok());
}

TEST(ServerTest, WhatWasStoredIsThereAfterARestart) {
  ServerOptions options = TestOptions();
  options.store = StoreKind::kSqlite;
  options.data_dir = ::testing::TempDir() + "stepcast_server_test_" + std::to_string(getpid());
  std::string name;
  {
    TestServer first(options);
    name = first.Store(ToWire(RandomProfile(1)));
  }
  TestServer second(options);
  grpc::ClientContext context;
  v1::GetProfileRequest request;
  request.set_name(name);
  v1::Profile reply;
  const grpc::Status status = second.profiles().GetProfile(&context, request, &reply);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(FromWire(reply).draft == RandomProfile(1));
  std::filesystem::remove_all(options.data_dir);
}

TEST(ServerTest, AMethodThereIsNotIsUnimplementedWithDetails) {
  TestServer server;
  for (const std::string method :
       {"/stepcast.v1.ProfileService/Nothing", "/nothing.at.All/Nothing"}) {
    const grpc::Status status = CallRaw(server, method, "");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
    EXPECT_EQ(ReasonOf(status), "METHOD_UNKNOWN") << method;
  }
  EXPECT_THAT(server.server().MetricsText(),
              HasSubstr("grpc_server_started_total{grpc_method=\"other\",grpc_service=\"other\","
                        "grpc_type=\"unary\"} 2"));
}

TEST(ServerTest, CallsAreCountedByMethodAndCode) {
  TestServer server;
  server.Store(ToWire(RandomProfile(1)));
  grpc::ClientContext context;
  v1::GetProfileRequest request;
  request.set_name("profiles/none");
  v1::Profile reply;
  EXPECT_EQ(server.profiles().GetProfile(&context, request, &reply).error_code(),
            grpc::StatusCode::NOT_FOUND);
  server.server().Drain();  // so that the last call has been counted
  const std::string handled = "grpc_server_handled_total{grpc_code=";
  const std::string of_profiles =
      R"(",grpc_service="stepcast.v1.ProfileService",grpc_type="unary"})";
  EXPECT_EQ(SampleOf(server, handled + R"("OK",grpc_method="CreateProfile)" + of_profiles), "1");
  EXPECT_EQ(SampleOf(server, handled + R"("NotFound",grpc_method="GetProfile)" + of_profiles), "1");
  EXPECT_EQ(SampleOf(server, "stepcast_store_profiles"), "1");
  EXPECT_EQ(SampleOf(server,
                     R"(stepcast_store_operation_seconds_count{code="NotFound",operation="get"})"),
            "1");
}

}  // namespace
}  // namespace stepcast::server::server_test
