// GenerateTrace through the real server: whole, refused, cancelled, and read by nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "core/trace/trace_events.h"
#include "server/convert/profile_convert.h"
#include "tests/server/app/test_server.h"
#include "tests/server/support/random_profile.h"
#include "tests/support/eventually.h"

namespace stepcast::server::trace_end_to_end_test {
namespace {

using ::testing::ElementsAre;

v1::GenerateTraceRequest Ask(int32_t steps, int32_t workers = 1) {
  v1::GenerateTraceRequest request;
  *request.mutable_inline_profile() = ToWire(SmallProfile());
  request.mutable_scenario()->set_workers(workers);
  request.mutable_options()->set_steps_per_worker(steps);
  return request;
}

// Hundreds of megabytes.
v1::GenerateTraceRequest AskForALot() { return Ask(100'000, 8); }

class TraceEndToEndTest : public ::testing::Test {
 protected:
  static ServerOptions Options(JobWatch& watch) {
    ServerOptions options = TestOptions();
    options.simulation_observer = &watch;
    options.threads = 1;
    options.drain_timeout_seconds = 0.2;
    return options;
  }

  JobWatch watch_;
  TestServer server_{Options(watch_)};
};

TEST_F(TraceEndToEndTest, AReaderGetsTheWholeTextInPieces) {
  grpc::ClientContext context;
  const auto reader = server_.predictions().GenerateTrace(&context, Ask(1000));
  v1::GenerateTraceResponse message;
  std::string text;
  while (reader->Read(&message)) {
    EXPECT_LE(message.chunk().size(), TextPieces::kPieceBytes);
    text += message.chunk();
  }
  ASSERT_TRUE(reader->Finish().ok());
  EXPECT_GT(text.size(), 5 * TextPieces::kPieceBytes);
  EXPECT_EQ(text.substr(0, 2) + text.substr(text.size() - 4), "{\"\n]}\n");
}

TEST_F(TraceEndToEndTest, ABadRequestIsRefusedBeforeTheFirstPiece) {
  grpc::ClientContext context;
  const auto reader = server_.predictions().GenerateTrace(&context, Ask(0));
  v1::GenerateTraceResponse message;
  EXPECT_FALSE(reader->Read(&message));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(FieldsOf(status), ElementsAre("options.steps_per_worker"));
  EXPECT_EQ(watch_.Started(), 0) << "nothing was simulated";
}

TEST_F(TraceEndToEndTest, ABrokenMessageIsRefusedAsAnywhere) {
  EXPECT_EQ(ReasonOf(CallRaw(server_, "/stepcast.v1.PredictionService/GenerateTrace", "\xFF")),
            "REQUEST_MALFORMED");
}

TEST_F(TraceEndToEndTest, ACallerWhoGoesEndsAJobThatWaitsForHim) {
  for (int round = 1; round <= 20; ++round) {
    grpc::ClientContext context;
    const auto reader = server_.predictions().GenerateTrace(&context, AskForALot());
    v1::GenerateTraceResponse message;
    ASSERT_TRUE(reader->Read(&message)) << "round " << round;
    if (round % 2 == 0) {
      ASSERT_TRUE(reader->Read(&message)) << "round " << round;
    }
    context.TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED) << "round " << round;
    watch_.WaitDone(round);
  }
}

TEST_F(TraceEndToEndTest, ADeadlineEndsAJobThatWaits) {
  // Each deadline is twice the one before, until one leaves even the busiest machine the time to
  // begin the job.
  for (std::chrono::milliseconds timeout(250); watch_.Started() == 0; timeout *= 2) {
    ASSERT_LT(timeout, kHang);
    grpc::ClientContext context;
    context.set_deadline(DeadlineIn(timeout));
    const auto reader = server_.predictions().GenerateTrace(&context, AskForALot());
    reader->WaitForInitialMetadata();
    if (watch_.Started() > 0) watch_.WaitDone(watch_.Started());
    v1::GenerateTraceResponse message;
    while (reader->Read(&message)) {
    }
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  watch_.WaitDone(watch_.Started());
}

TEST_F(TraceEndToEndTest, TheServerStopsWhileATraceIsUnderWay) {
  grpc::ClientContext context;
  const auto reader = server_.predictions().GenerateTrace(&context, AskForALot());
  v1::GenerateTraceResponse message;
  ASSERT_TRUE(reader->Read(&message));
  server_.server().Drain();
  while (reader->Read(&message)) {
  }
  EXPECT_FALSE(reader->Finish().ok());
}

}  // namespace
}  // namespace stepcast::server::trace_end_to_end_test
