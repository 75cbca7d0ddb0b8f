#include "client/src/load/grpc_load_transport.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <vector>

#include "client/src/load/load_run.h"

#include "stepcast/v1/admin_service.pb.h"
#include "stepcast/v1/order.pb.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/recommendation.pb.h"
#include "tests/client/support/fake_service.h"
#include "tests/client/support/text_proto.h"
#include "tests/client/support/tiny_profile.h"
#include "tests/support/eventually.h"

namespace stepcast::client::grpc_load_transport_test {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr char kOptions[] = " options { steps_per_worker: 77 seed: 5 replications: 3 }";

// About a stored profile, with what else `text` says.
template <typename Request>
Request About(const std::string& text = "") {
  return Proto<Request>("profile: \"profiles/a\"" + text);
}

TEST(PreparedCallTest, ASeedBehindTheRequestChangesNothingElse) {
  auto expected =
      AboutTiny<v1::PredictThroughputRequest>(std::string("worker_counts: [ 1, 4 ]") + kOptions);
  const PreparedCall call = Prepare(expected);
  v1::PredictThroughputRequest sent;
  ASSERT_TRUE(sent.ParseFromString(call.request));
  EXPECT_TRUE(MessageDifferencer::Equals(sent, expected)) << sent.ShortDebugString();
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{300}, ~uint64_t{0}}) {
    expected.mutable_options()->set_seed(seed);
    ASSERT_TRUE(sent.ParseFromString(call.request + call.seed(seed)));
    EXPECT_TRUE(MessageDifferencer::Equals(sent, expected)) << sent.ShortDebugString();
  }
}

TEST(PreparedCallTest, EachMethodHasItsSeed) {
  const PreparedCall recommend = Prepare(About<v1::RecommendWorkersRequest>(kOptions));
  v1::RecommendWorkersRequest recommendation;
  ASSERT_TRUE(recommendation.ParseFromString(recommend.request + recommend.seed(9)));
  EXPECT_EQ(recommendation.options().seed(), 9);
  EXPECT_EQ(recommendation.options().steps_per_worker(), 77);
  const PreparedCall order = Prepare(About<v1::OptimizeOrderRequest>(kOptions));
  v1::OptimizeOrderRequest ordering;
  ASSERT_TRUE(ordering.ParseFromString(order.request + order.seed(9)));
  EXPECT_EQ(ordering.options().seed(), 9);
  EXPECT_EQ(PreparePing().seed, nullptr);
}

TEST(PreparedCallTest, EachMethodIsOneOfTheContract) {
  // So that the linker keeps both services' descriptors.
  ASSERT_NE(v1::PingRequest::descriptor(), nullptr);
  ASSERT_NE(v1::GenerateTraceRequest::descriptor(), nullptr);
  const std::vector<PreparedCall> calls{
      PreparePing(), Prepare(About<v1::PredictThroughputRequest>()),
      Prepare(About<v1::RecommendWorkersRequest>()), Prepare(About<v1::OptimizeOrderRequest>())};
  for (const PreparedCall& call : calls) {
    std::string name = call.method.substr(1);
    name[name.find('/')] = '.';
    EXPECT_NE(google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name), nullptr)
        << name;
  }
}

TEST(PreparedCallTest, OnlyAnAnswerPassesAsOne) {
  const PreparedCall call = Prepare(About<v1::PredictThroughputRequest>());
  v1::PredictThroughputResponse reply;
  EXPECT_EQ(call.check(reply.SerializeAsString()).code(), absl::StatusCode::kDataLoss);
  reply.add_predictions()->set_examples_per_second(1);
  EXPECT_TRUE(call.check(reply.SerializeAsString()).ok());
  EXPECT_EQ(call.check("no message").code(), absl::StatusCode::kDataLoss);
}

TEST(LoadQuestionsTest, GoThroughAllCallsAndThenToTheNextSeed) {
  const LoadQuestions questions{
      .calls = {PreparePing(), Prepare(About<v1::PredictThroughputRequest>())},
      .vary = 3,
      .first_seed = 10};
  std::vector<uint64_t> seeds;
  for (uint64_t question = 0; question < 8; ++question) {
    EXPECT_EQ(questions.CallOf(question).method, questions.calls[question % 2].method);
    seeds.push_back(questions.SeedOf(question));
  }
  EXPECT_EQ(seeds, (std::vector<uint64_t>{10, 10, 11, 11, 12, 12, 10, 10}));
}

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
