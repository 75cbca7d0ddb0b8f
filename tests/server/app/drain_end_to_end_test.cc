// Stopping a server that has work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/convert/profile_convert.h"
#include "tests/server/app/test_server.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server::drain_end_to_end_test {
namespace {

// A prediction of about a second or less on any machine: far longer than draining takes to begin.
v1::PredictThroughputRequest LongRequest(const std::string& profile) {
  v1::PredictThroughputRequest request = EndlessRequest(profile);
  request.mutable_options()->set_steps_per_worker(200'000);
  request.mutable_options()->set_replications(1);
  return request;
}

TEST(DrainEndToEndTest, CallsInFlightFinish) {
  JobWatch watch;
  ServerOptions options = TestOptions();
  options.simulation_observer = &watch;
  options.drain_timeout_seconds = 600;
  TestServer server(options);
  const v1::PredictThroughputRequest request = LongRequest(server.Store(ToWire(SmallProfile())));
  grpc::Status status;
  v1::PredictThroughputResponse reply;
  std::thread call([&] {
    grpc::ClientContext context;
    status = server.predictions().PredictThroughput(&context, request, &reply);
  });
  watch.WaitStarted(1);
  server.server().Drain();
  call.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.predictions_size(), 1);
}

TEST(DrainEndToEndTest, CallsThatTakeLongerThanTheTimeoutAreCancelled) {
  JobWatch watch;
  ServerOptions options = TestOptions();
  options.simulation_observer = &watch;
  options.drain_timeout_seconds = 0.05;
  TestServer server(options);
  const v1::PredictThroughputRequest request = EndlessRequest(server.Store(ToWire(SmallProfile())));
  grpc::Status status;
  std::thread call([&] {
    grpc::ClientContext context;
    v1::PredictThroughputResponse reply;
    status = server.predictions().PredictThroughput(&context, request, &reply);
  });
  watch.WaitStarted(1);
  server.server().Drain();
  watch.WaitDone(1);
  call.join();
  EXPECT_FALSE(status.ok());
}

TEST(DrainEndToEndTest, NewCallsAreRefusedAfterwards) {
  TestServer server;
  server.server().Drain();
  server.server().Drain();
  grpc::ClientContext context;
  v1::ListProfilesResponse reply;
  EXPECT_EQ(
      server.profiles().ListProfiles(&context, v1::ListProfilesRequest(), &reply).error_code(),
      grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace stepcast::server::drain_end_to_end_test
