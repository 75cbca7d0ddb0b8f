#include "client/src/load/grpc_load_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <vector>

#include "client/src/load/load_run.h"

#include "tests/client/support/fake_service.h"
#include "tests/client/support/text_proto.h"
#include "tests/support/eventually.h"

namespace stepcast::client::grpc_load_transport_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Ends : public LoadTransport::Listener {
 public:
  void OnEnded(uint32_t call, absl::StatusCode code) override {
    const std::scoped_lock lock(mutex_);
    codes_[call].push_back(code);
  }
  std::map<uint32_t, std::vector<absl::StatusCode>> codes() const {
    const std::scoped_lock lock(mutex_);
    return codes_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, std::vector<absl::StatusCode>> codes_;
};

LoadQuestions Predictions(uint64_t vary) {
  return {.calls = {Prepare(Proto<v1::PredictThroughputRequest>(R"pb(profile: "profiles/a")pb"))},
          .vary = vary,
          .first_seed = 100};
}

class GrpcLoadTransportTest : public testing::Test {
 protected:
  GrpcLoadTransportTest() {
    service_.predict = [this](const v1::PredictThroughputRequest& request,
                              v1::PredictThroughputResponse& reply) {
      const std::scoped_lock lock(mutex_);
      ++seeds_[request.options().seed()];
      reply.add_predictions();
      return status_;
    };
  }

  std::unique_ptr<GrpcLoadTransport> Connect(uint64_t vary, int connections = 1) const {
    return MakeGrpcLoadTransport({.client = {.server = service_.address()},
                                  .connections = connections,
                                  .deadline = kHang,
                                  .calls_max = 50},
                                 Predictions(vary));
  }

  grpc::Status status_;
  std::mutex mutex_;
  std::map<uint64_t, int> seeds_;  // how often each was asked
  FakeService service_;
};

TEST_F(GrpcLoadTransportTest, EveryCallIsAskedAndEndsOnce) {
  for (const int connections : {1, 3}) {
    seeds_.clear();
    const auto transport = Connect(/*vary=*/20, connections);
    Ends ends;
    for (uint32_t call = 0; call < 40; ++call) transport->Start(call, call, ends);
    transport->AwaitAll();
    EXPECT_EQ(ends.codes().size(), 40);
    for (const auto& [call, codes] : ends.codes())
      EXPECT_THAT(codes, testing::ElementsAre(absl::StatusCode::kOk)) << call;
    EXPECT_EQ(seeds_.size(), 20);
    for (const auto& [seed, times] : seeds_)
      EXPECT_TRUE(times == 2 && seed >= 100 && seed < 120) << seed;
  }
}

TEST_F(GrpcLoadTransportTest, WhatTheServiceAnswersIsTheCode) {
  status_ = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full");
  const auto transport = Connect(1);
  Ends ends;
  transport->Start(0, 0, ends);
  transport->AwaitAll();
  EXPECT_THAT(ends.codes()[0], testing::ElementsAre(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(transport->Check(Predictions(1).calls[0]).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(GrpcLoadTransportTest, ALoadCallsAsOftenAsItSays) {
  const auto transport = Connect(1);
  SteadyLoadClock clock;
  int64_t calls = 0;
  for (const auto& loop : {std::variant<ClosedLoop, OpenLoop>(ClosedLoop{4}),
                           std::variant<ClosedLoop, OpenLoop>(OpenLoop{200})}) {
    // Twice as long each time, until the busiest machine has made a call that counts.
    int64_t counted = 0;
    for (milliseconds duration(200); counted == 0 && duration < kHang; duration *= 2) {
      const LoadResult result = RunLoad(
          {.loop = loop, .warmup = milliseconds(50), .duration = duration}, clock, *transport);
      EXPECT_EQ(Sum(result.all_codes), result.all_codes[0]);
      counted = result.latency.count();
      calls += Sum(result.all_codes);
    }
    EXPECT_GT(counted, 0);
  }
  EXPECT_EQ(calls, seeds_[0]) << "of one question no seed is sent";
}

TEST_F(GrpcLoadTransportTest, AReplyThatIsNoAnswerFailsTheCheck) {
  EXPECT_TRUE(Connect(1)->Check(Predictions(1).calls[0]).ok());
  service_.predict = [](const v1::PredictThroughputRequest& /*request*/,
                        v1::PredictThroughputResponse& /*reply*/) { return grpc::Status::OK; };
  EXPECT_EQ(Connect(1)->Check(Predictions(1).calls[0]).code(), absl::StatusCode::kDataLoss);
}

TEST(GrpcLoadTransportWithoutServerTest, EveryCallEndsAsUnavailable) {
  // Nothing listens on the port of what has stopped.
  const std::string address = FakeService().address();
  const auto transport =
      MakeGrpcLoadTransport({.client = {.server = address}, .deadline = kHang}, Predictions(1));
  EXPECT_EQ(transport->Check(Predictions(1).calls[0]).code(), absl::StatusCode::kUnavailable);
  SteadyLoadClock clock;
  const LoadResult result =
      RunLoad({.loop = ClosedLoop{8}, .duration = std::chrono::minutes(10)}, clock, *transport);
  EXPECT_TRUE(result.server_gone);
  EXPECT_EQ(Sum(result.all_codes),
            result.all_codes[static_cast<size_t>(absl::StatusCode::kUnavailable)]);
}

}  // namespace
}  // namespace stepcast::client::grpc_load_transport_test
