#include "client/src/convert/job_proto.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "stepcast/error_details.h"
#include "tests/client/support/random_message.h"

namespace stepcast::client::job_proto_test {
namespace {

using google::longrunning::Operation;
using google::protobuf::util::MessageDifferencer;

Operation Random(std::mt19937_64& generator) {
  Operation operation;
  operation.set_name("operations/o-1");
  operation.set_done(true);
  v1::JobMetadata metadata;
  FillRandomly(metadata, generator, /*all=*/true);
  operation.mutable_metadata()->PackFrom(metadata);
  return operation;
}

Operation ThereAndBack(const Operation& sent) {
  Job job;
  FromProto(sent, job);
  Operation back;
  ToProto(job, back);
  return back;
}

template <typename Reply>
class JobReplyTest : public testing::Test {};

using Replies = testing::Types<v1::PredictThroughputResponse, v1::RecommendWorkersResponse,
                               v1::OptimizeOrderResponse, v1::CompareModelsResponse>;
TYPED_TEST_SUITE(JobReplyTest, Replies);

TYPED_TEST(JobReplyTest, EveryFieldComesBack) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 generator(seed);
    Operation sent = Random(generator);
    TypeParam reply;
    FillRandomly(reply, generator, /*all=*/true);
    sent.mutable_response()->PackFrom(reply);
    const Operation back = ThereAndBack(sent);
    ASSERT_TRUE(MessageDifferencer::Equals(sent, back)) << sent.DebugString() << "came back as\n"
                                                        << back.DebugString();
  }
}

TEST(JobProtoTest, AnAllocationComesBack) {
  Operation sent;
  v1::AllocateWorkersResponse reply;
  reply.set_total_utility(2.5);
  sent.mutable_response()->PackFrom(reply);
  Job job;
  FromProto(sent, job);
  EXPECT_EQ(std::get<AllocateWorkersResponse>(job.reply).total_utility, 2.5);
}

TEST(JobProtoTest, AnErrorComesBackWithItsDetails) {
  std::mt19937_64 generator(1);
  Operation sent = Random(generator);
  sent.mutable_error()->set_code(5);
  sent.mutable_error()->set_message("gone");
  google::protobuf::Any& detail = *sent.mutable_error()->add_details();
  detail.set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
  detail.set_value("\x0a\x04GONE");
  Job job;
  FromProto(sent, job);
  EXPECT_TRUE(absl::IsNotFound(job.status));
  EXPECT_EQ(GetErrorDetails(job.status).reason, "GONE");
  EXPECT_TRUE(MessageDifferencer::Equals(sent, ThereAndBack(sent)));
}

TEST(JobProtoTest, WhatALaterServerAddsIsLeftOutAndBreaksNothing) {
  Operation sent;
  sent.set_name("operations/o-1");
  sent.set_done(true);
  sent.mutable_metadata()->set_type_url("type.googleapis.com/stepcast.v9.JobMetadata");
  sent.mutable_response()->set_type_url("type.googleapis.com/stepcast.v9.Response");
  sent.mutable_response()->set_value("\xff\xff");
  Job job;
  FromProto(sent, job);
  EXPECT_EQ(job, (Job{.name = "operations/o-1", .done = true}));
}

TEST(JobProtoTest, AReplyThatCannotBeReadIsNone) {
  Operation sent;
  sent.mutable_response()->set_type_url(
      "type.googleapis.com/stepcast.v1.PredictThroughputResponse");
  sent.mutable_response()->set_value("\xff\xff");
  Job job;
  FromProto(sent, job);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(job.reply));
}

TEST(JobProtoTest, EveryComputationIsSentAsItself) {
  const auto sent = [](JobComputation computation) {
    v1::StartJobRequest message;
    ToProto(StartJobRequest{.request_id = "id", .computation = std::move(computation)}, message);
    EXPECT_EQ(message.request_id(), "id");
    return message;
  };
  EXPECT_EQ(sent(PredictThroughputRequest{.source = "profiles/p"}).predict_throughput().profile(),
            "profiles/p");
  EXPECT_EQ(sent(RecommendWorkersRequest{.source = "profiles/p"}).recommend_workers().profile(),
            "profiles/p");
  EXPECT_EQ(sent(OptimizeOrderRequest{.source = "profiles/p"}).optimize_order().profile(),
            "profiles/p");
  EXPECT_EQ(sent(AllocateWorkersRequest{.jobs = {{.id = "a"}}}).allocate_workers().jobs(0).id(),
            "a");
  EXPECT_EQ(sent(CompareModelsRequest{.source = "profiles/p"}).compare_models().profile(),
            "profiles/p");
}

}  // namespace
}  // namespace stepcast::client::job_proto_test
