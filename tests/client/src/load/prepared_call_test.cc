#include "client/src/load/prepared_call.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "stepcast/v1/admin_service.pb.h"
#include "stepcast/v1/order.pb.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/recommendation.pb.h"
#include "tests/client/support/tiny_profile.h"

namespace stepcast::client::prepared_call_test {
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

}  // namespace
}  // namespace stepcast::client::prepared_call_test
