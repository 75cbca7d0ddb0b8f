// PredictionService through the real server.
#include <gmock/gmock.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include "server/convert/profile_convert.h"
#include "tests/server/app/test_server.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server::prediction_end_to_end_test {
namespace {

template <typename Request>
Request Ask(const std::string& profile) {
  Request request;
  request.set_profile(profile);
  request.mutable_options()->set_steps_per_worker(50);
  request.mutable_options()->set_seed(9);
  return request;
}

TEST(PredictionEndToEndTest, ThroughputIsPredictedForEveryCount) {
  TestServer server;
  auto request = Ask<v1::PredictThroughputRequest>(server.Store(ToWire(SmallProfile())));
  for (const int workers : {1, 2, 4}) request.add_worker_counts(workers);
  request.mutable_options()->set_step_variation(v1::SimulationOptions::AS_RECORDED);
  grpc::ClientContext context;
  v1::PredictThroughputResponse reply;
  const grpc::Status status = server.predictions().PredictThroughput(&context, request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(reply.predictions_size(), 3);
  EXPECT_EQ(reply.predictions(2).scenario().workers(), 4);
  // 8 examples in 1 us of transfer and 1 ms of computation.
  EXPECT_NEAR(reply.predictions(0).examples_per_second(), 8 / 0.001001, 0.01);
  EXPECT_EQ(reply.seed(), 9U);
  EXPECT_EQ(reply.options().steps_per_worker(), 50);
  EXPECT_GT(reply.simulation().simulated_operations(), 0);
  EXPECT_GT(reply.simulation().engine_seconds(), 0);
  EXPECT_EQ(reply.profile_digest().size(), 64U);
}

TEST(PredictionEndToEndTest, TheOtherTwoAnswerToo) {
  TestServer server;
  const std::string profile = server.Store(ToWire(SmallProfile()));
  grpc::ClientContext recommend_context;
  v1::RecommendWorkersResponse recommendation;
  ASSERT_TRUE(server.predictions()
                  .RecommendWorkers(&recommend_context, Ask<v1::RecommendWorkersRequest>(profile),
                                    &recommendation)
                  .ok());
  EXPECT_GE(recommendation.workers(), 1);
  EXPECT_FALSE(recommendation.reason().empty());
  grpc::ClientContext order_context;
  v1::OptimizeOrderResponse order;
  auto request = Ask<v1::OptimizeOrderRequest>(profile);
  request.add_methods(v1::TAC);
  ASSERT_TRUE(server.predictions().OptimizeOrder(&order_context, request, &order).ok());
  ASSERT_EQ(order.orders_size(), 1);
  EXPECT_EQ(order.orders(0).transfers(0).name(), "recv");
}

// Or it would be ignored silently: 5 was once the number of `synchronization`.
TEST(PredictionEndToEndTest, AFieldThatIsNotKnownIsRefused) {
  TestServer server;
  auto request = Ask<v1::PredictThroughputRequest>(server.Store(ToWire(SmallProfile())));
  v1::Scenario& scenario = *request.mutable_scenario();
  scenario.GetReflection()->MutableUnknownFields(&scenario)->AddVarint(5, 2);
  v1::ParameterServers& servers = *scenario.mutable_parameter_servers();
  servers.GetReflection()->MutableUnknownFields(&servers)->AddVarint(1000, 7);
  grpc::ClientContext context;
  v1::PredictThroughputResponse reply;
  const grpc::Status status = server.predictions().PredictThroughput(&context, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonOf(status), "REQUEST_INVALID");
  EXPECT_EQ(
      status.error_message(),
      "scenario: field 5 of stepcast.v1.Scenario is not known to this server: it is of another "
      "version of it (and 1 more)");
}

// All that a server says, but for the time it took.
template <typename Reply>
std::string BytesOf(const grpc::Status& status, Reply& reply) {
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_GT(reply.simulation().simulated_operations(), 0);
  reply.mutable_simulation()->clear_engine_seconds();
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  EXPECT_TRUE(reply.SerializeToCodedStream(&coded));
  coded.Trim();
  return bytes;
}

struct Answers {
  std::string throughput;
  std::string recommendation;
  std::string order;
  friend bool operator==(const Answers&, const Answers&) = default;
};

Answers AnswersOf(TestServer& server, uint64_t seed) {
  const std::string profile = server.Store(ToWire(RandomProfile(seed)));
  auto throughput = Ask<v1::PredictThroughputRequest>(profile);
  for (const int workers : {1, 2, 5}) throughput.add_worker_counts(workers);
  if (seed % 2 == 0) throughput.mutable_options()->set_relative_precision(0.01);
  grpc::ClientContext contexts[3];
  v1::PredictThroughputResponse predicted;
  v1::RecommendWorkersResponse recommended;
  v1::OptimizeOrderResponse ordered;
  auto recommendation = Ask<v1::RecommendWorkersRequest>(profile);
  recommendation.mutable_constraints()->set_max_workers(6);
  auto order = Ask<v1::OptimizeOrderRequest>(profile);
  order.mutable_scenario()->set_workers(3);
  return {
      .throughput = BytesOf(
          server.predictions().PredictThroughput(&contexts[0], throughput, &predicted), predicted),
      .recommendation =
          BytesOf(server.predictions().RecommendWorkers(&contexts[1], recommendation, &recommended),
                  recommended),
      .order = BytesOf(server.predictions().OptimizeOrder(&contexts[2], order, &ordered), ordered)};
}

TEST(PredictionEndToEndTest, ARepliesBytesDoNotDependOnTheThreads) {
  ServerOptions options = TestOptions();
  options.threads = 1;
  TestServer one(options);
  options.threads = 2;
  TestServer two(options);
  options.threads = 8;
  TestServer eight(options);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Answers expected = AnswersOf(one, seed);
    EXPECT_TRUE(AnswersOf(two, seed) == expected) << "2 threads, seed " << seed;
    EXPECT_TRUE(AnswersOf(eight, seed) == expected) << "8 threads, seed " << seed;
  }
}

TEST(PredictionEndToEndTest, AnInlineProfileIsUsedAndForgotten) {
  TestServer server;
  v1::PredictThroughputRequest request;
  *request.mutable_inline_profile() = ToWire(SmallProfile());
  grpc::ClientContext context;
  v1::PredictThroughputResponse reply;
  ASSERT_TRUE(server.predictions().PredictThroughput(&context, request, &reply).ok());
  EXPECT_EQ(SampleOf(server, "stepcast_store_profiles"), "0");
}

TEST(PredictionEndToEndTest, ABadRequestNamesEveryField) {
  TestServer server;
  auto request = Ask<v1::PredictThroughputRequest>(server.Store(ToWire(SmallProfile())));
  request.add_worker_counts(-1);
  request.mutable_options()->set_replications(0);
  request.mutable_options()->set_start(static_cast<v1::SimulationOptions::Start>(40));
  grpc::ClientContext context;
  v1::PredictThroughputResponse reply;
  const grpc::Status status = server.predictions().PredictThroughput(&context, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ReasonOf(status), "REQUEST_INVALID");
  EXPECT_THAT(FieldsOf(status), ::testing::UnorderedElementsAre(
                                    "options.start", "options.replications", "worker_counts[0]"));
}

TEST(PredictionEndToEndTest, AnUnknownProfileIsNotFound) {
  TestServer server;
  grpc::ClientContext context;
  v1::PredictThroughputResponse reply;
  const grpc::Status status = server.predictions().PredictThroughput(
      &context, Ask<v1::PredictThroughputRequest>("profiles/none"), &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(DetailOf<google::rpc::ResourceInfo>(status)->resource_name(), "profiles/none");
}

TEST(PredictionEndToEndTest, ATimeBudgetEndsTheCallWithWhatThereIs) {
  TestServer server;
  auto request = EndlessRequest(server.Store(ToWire(SmallProfile())));
  request.mutable_options()->set_steps_per_worker(4'000);  // long enough on any machine
  request.mutable_options()->set_start(v1::SimulationOptions::STAGGERED);
  request.mutable_options()->mutable_time_budget()->set_nanos(400'000'000);
  grpc::ClientContext context;
  v1::PredictThroughputResponse reply;
  const grpc::Status status = server.predictions().PredictThroughput(&context, request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_GE(reply.predictions(0).replications(), 1);
  EXPECT_LT(reply.predictions(0).replications(), 1000);
}

}  // namespace
}  // namespace stepcast::server::prediction_end_to_end_test
