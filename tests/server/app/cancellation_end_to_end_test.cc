// Calls that are given up on, or that find no place: through the real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "server/convert/profile_convert.h"
#include "tests/server/app/test_server.h"
#include "tests/server/support/random_profile.h"
#include "tests/support/eventually.h"

namespace stepcast::server::cancellation_end_to_end_test {
namespace {

// A call in a thread of its own.
class Call {
 public:
  Call(TestServer& server, const v1::PredictThroughputRequest& request,
       std::optional<std::chrono::milliseconds> timeout = std::nullopt)
      : request_(request) {
    if (timeout) context_.set_deadline(DeadlineIn(*timeout));
    thread_ = std::thread([this, &server] {
      status_ = server.predictions().PredictThroughput(&context_, request_, &reply_);
    });
  }
  ~Call() { Finish(); }

  void Cancel() { context_.TryCancel(); }
  grpc::Status Finish() {
    if (thread_.joinable()) thread_.join();
    return status_;
  }

 private:
  grpc::ClientContext context_;
  v1::PredictThroughputRequest request_;
  v1::PredictThroughputResponse reply_;
  grpc::Status status_;
  std::thread thread_;
};

class CancellationEndToEndTest : public ::testing::Test {
 protected:
  static ServerOptions Options(JobWatch& watch) {
    ServerOptions options = TestOptions();
    options.simulation_observer = &watch;
    options.threads = 1;
    options.queue_max = 1;
    return options;
  }

  JobWatch watch_;
  TestServer server_{Options(watch_)};
  const std::string profile_ = server_.Store(ToWire(SmallProfile()));
};

// The request would be simulated for minutes, so that it ends at all shows that it was stopped.
TEST_F(CancellationEndToEndTest, ACancelledCallEndsItsSimulation) {
  for (int round = 1; round <= 3; ++round) {
    Call call(server_, EndlessRequest(profile_));
    watch_.WaitStarted(round);
    call.Cancel();
    watch_.WaitDone(round);
    EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(CancellationEndToEndTest, ADeadlineEndsItsSimulation) {
  int started = 0;
  // Each deadline is twice the one before, until one leaves even the busiest machine the time to
  // begin the job.
  for (std::chrono::milliseconds timeout(150); started == 0; timeout *= 2) {
    ASSERT_LT(timeout, kHang);
    // A call that is expected to take too long would not begin.
    v1::PredictThroughputRequest request = EndlessRequest(profile_);
    request.mutable_options()->mutable_time_budget()->set_seconds(1 + 3 * timeout.count() / 1000);
    Call call(server_, request, timeout);
    const grpc::StatusCode code = call.Finish().error_code();
    // The job of the round before may still be in the queue.
    if (code != grpc::StatusCode::RESOURCE_EXHAUSTED) {
      EXPECT_EQ(code, grpc::StatusCode::DEADLINE_EXCEEDED);
    }
    started = watch_.Started();
  }
  watch_.WaitDone(started);
}

TEST_F(CancellationEndToEndTest, AFullQueueRefusesAtOnceAndSaysWhenToComeAgain) {
  Call running(server_, EndlessRequest(profile_));
  watch_.WaitStarted(1);
  Call waiting(server_, EndlessRequest(profile_, 2));
  watch_.WaitQueued(2);
  Call refused(server_, EndlessRequest(profile_, 3));
  const grpc::Status status = refused.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(status), "QUEUE_FULL");
  EXPECT_TRUE(DetailOf<google::rpc::RetryInfo>(status)->has_retry_delay());
  EXPECT_EQ(DetailOf<google::rpc::QuotaFailure>(status)->violations(0).subject(), "queue_max");
  running.Cancel();
  waiting.Cancel();
}

TEST_F(CancellationEndToEndTest, OthersAreServedWhileSimulationsFillTheQueue) {
  Call running(server_, EndlessRequest(profile_));
  watch_.WaitStarted(1);
  Call waiting(server_, EndlessRequest(profile_, 2));
  watch_.WaitQueued(2);
  v1::GetProfileRequest get;
  get.set_name(profile_);
  grpc::ClientContext context;
  v1::Profile reply;
  EXPECT_TRUE(server_.profiles().GetProfile(&context, get, &reply).ok());
  v1::PredictThroughputRequest bad;
  Call refused(server_, bad);
  EXPECT_EQ(refused.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT)
      << "found wrong without waiting for a place";
  running.Cancel();
  waiting.Cancel();
}

TEST_F(CancellationEndToEndTest, ACallCancelledWhileItWaitsEndsWhenItsTurnComes) {
  Call running(server_, EndlessRequest(profile_));
  watch_.WaitStarted(1);
  Call waiting(server_, EndlessRequest(profile_, 2));
  watch_.WaitQueued(2);
  waiting.Cancel();
  EXPECT_EQ(waiting.Finish().error_code(), grpc::StatusCode::CANCELLED);
  running.Cancel();
  watch_.WaitDone(2);
}

TEST(JobLimitEndToEndTest, AComputationHasALimit) {
  ServerOptions options = TestOptions();
  options.max_job_seconds = 0.02;
  TestServer server(options);
  Call call(server, EndlessRequest(server.Store(ToWire(SmallProfile()))));
  const grpc::Status status = call.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ReasonOf(status), "JOB_TOO_LONG");
  EXPECT_EQ(DetailOf<google::rpc::QuotaFailure>(status)->violations(0).subject(),
            "max_job_seconds");
}

}  // namespace
}  // namespace stepcast::server::cancellation_end_to_end_test
