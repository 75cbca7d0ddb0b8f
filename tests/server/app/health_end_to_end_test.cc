// Health and reflection through the real server.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "grpc/health/v1/health.grpc.pb.h"

#include "tests/server/app/test_server.h"

namespace stepcast::server::health_end_to_end_test {
namespace {

namespace health = grpc::health::v1;

TEST(HealthEndToEndTest, EveryServiceAndTheWholeAreServing) {
  TestServer server;
  const auto stub = health::Health::NewStub(server.channel());
  for (const std::string service :
       {"", "stepcast.v1.ProfileService", "stepcast.v1.PredictionService"}) {
    grpc::ClientContext context;
    health::HealthCheckRequest request;
    request.set_service(service);
    health::HealthCheckResponse reply;
    ASSERT_TRUE(stub->Check(&context, request, &reply).ok()) << service;
    EXPECT_EQ(reply.status(), health::HealthCheckResponse::SERVING) << service;
  }
}

TEST(HealthEndToEndTest, AnUnknownServiceIsNotFoundButMayBeWatched) {
  TestServer server;
  const auto stub = health::Health::NewStub(server.channel());
  health::HealthCheckRequest request;
  request.set_service("nothing");
  health::HealthCheckResponse reply;
  grpc::ClientContext check_context;
  EXPECT_EQ(stub->Check(&check_context, request, &reply).error_code(), grpc::StatusCode::NOT_FOUND);
  grpc::ClientContext watch_context;
  const auto reader = stub->Watch(&watch_context, request);
  ASSERT_TRUE(reader->Read(&reply));
  EXPECT_EQ(reply.status(), health::HealthCheckResponse::SERVICE_UNKNOWN);
  watch_context.TryCancel();
}

TEST(HealthEndToEndTest, AWatcherIsToldOfTheEnd) {
  TestServer server;
  const auto stub = health::Health::NewStub(server.channel());
  grpc::ClientContext context;
  const auto reader = stub->Watch(&context, health::HealthCheckRequest());
  health::HealthCheckResponse reply;
  ASSERT_TRUE(reader->Read(&reply));
  EXPECT_EQ(reply.status(), health::HealthCheckResponse::SERVING);
  server.server().Drain();
  ASSERT_TRUE(reader->Read(&reply));
  EXPECT_EQ(reply.status(), health::HealthCheckResponse::NOT_SERVING);
  EXPECT_FALSE(reader->Read(&reply));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(HealthEndToEndTest, WatchersComeAndGo) {
  TestServer server;
  const auto stub = health::Health::NewStub(server.channel());
  for (int round = 0; round < 50; ++round) {
    grpc::ClientContext context;
    const auto reader = stub->Watch(&context, health::HealthCheckRequest());
    health::HealthCheckResponse reply;
    ASSERT_TRUE(reader->Read(&reply));
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

// The reflection service's messages are inside gRPC, so the request is written by hand: field 4 is
// file_containing_symbol.
std::string Reflect(TestServer& server, const std::string& symbol) {
  grpc::GenericStub stub(server.channel());
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  const auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  queue.Next(&tag, &ok);
  const std::string bytes = std::string("\x22") + static_cast<char>(symbol.size()) + symbol;
  const grpc::Slice slice(bytes);
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  queue.Next(&tag, &ok);
  grpc::ByteBuffer reply;
  call->Read(&reply, nullptr);
  queue.Next(&tag, &ok);
  call->WritesDone(nullptr);
  queue.Next(&tag, &ok);
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  grpc::Slice whole;
  EXPECT_TRUE(reply.DumpToSingleSlice(&whole).ok());
  return {reinterpret_cast<const char*>(whole.begin()), whole.size()};
}

TEST(ReflectionEndToEndTest, EveryServiceCanBeDescribed) {
  TestServer server;
  EXPECT_THAT(Reflect(server, "stepcast.v1.ProfileService"), ::testing::HasSubstr("UploadProfile"));
  EXPECT_THAT(Reflect(server, "stepcast.v1.PredictionService"),
              ::testing::HasSubstr("PredictThroughput"));
  EXPECT_THAT(Reflect(server, "stepcast.v1.JobService"), ::testing::HasSubstr("StartJob"));
  EXPECT_THAT(Reflect(server, "google.longrunning.Operations"),
              ::testing::HasSubstr("WaitOperation"));
  EXPECT_THAT(Reflect(server, "grpc.health.v1.Health"),
              ::testing::HasSubstr("HealthCheckResponse"));
}

}  // namespace
}  // namespace stepcast::server::health_end_to_end_test
