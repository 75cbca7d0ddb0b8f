#include "client/cli/local_connection.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client/src/connection.h"

#include "server/local/local_service.h"
#include "stepcast/error_details.h"
#include "stepcast/json.h"
#include "tests/client/support/tiny_profile.h"

namespace stepcast::client::local_connection_test {
namespace {

TEST(LocalConnectionTest, PredictsWhatCanBeWorkedOutByHand) {
  const auto reply = MakeLocalClient().PredictThroughput(AboutTiny<v1::PredictThroughputRequest>(
      "worker_counts: 1 options { step_variation: AS_RECORDED }"));
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->predictions_size(), 1);
  const v1::Prediction& prediction = reply->predictions(0);
  EXPECT_NEAR(prediction.steps_per_second(), 200, 1e-6);
  EXPECT_NEAR(prediction.examples_per_second(), 2000, 1e-5);
  // Percentiles are exact to 0.1 %.
  EXPECT_NEAR(prediction.step_time().p50().nanos(), 5e6, 5e3);
  EXPECT_EQ(prediction.scenario().workers(), 1);
  EXPECT_EQ(prediction.scenario().bandwidth_bytes_per_second(), 1e6);
  EXPECT_EQ(prediction.most_used(), v1::Operation::WORKER);
  // Links twice as fast take 1 ms from 5, as a processor twice as fast would, and are named first.
  EXPECT_EQ(prediction.bottleneck(), v1::Operation::DOWNLINK);
  EXPECT_NEAR(prediction.bottleneck_gain(), 0.25, 1e-3);
  EXPECT_FALSE(reply->options().has_steps_per_worker());
  EXPECT_EQ(prediction.steps_per_worker(), 1000) << "nothing is random";
}

TEST(LocalConnectionTest, ATimeWithoutALimitIsNotOver) {
  const auto reply =
      MakeLocalClient({.timeout = std::chrono::nanoseconds::max()})
          .PredictThroughput(AboutTiny<v1::PredictThroughputRequest>("worker_counts: 1"));
  EXPECT_TRUE(reply.ok()) << reply.status();
}

TEST(LocalConnectionTest, TheScenarioReachesTheEngine) {
  const Client client = MakeLocalClient();
  const auto slow = client.PredictThroughput(AboutTiny<v1::PredictThroughputRequest>(
      "worker_counts: 1 scenario { bandwidth_bytes_per_second: 5e5 }"
      " options { step_variation: AS_RECORDED }"));
  ASSERT_TRUE(slow.ok()) << slow.status();
  // Both transfers take twice as long: 7 ms.
  EXPECT_NEAR(slow->predictions(0).steps_per_second(), 1000.0 / 7, 1e-6);
}

TEST(LocalConnectionTest, RecommendsAndOrders) {
  const Client client = MakeLocalClient();
  const auto recommendation = client.RecommendWorkers(
      AboutTiny<v1::RecommendWorkersRequest>("constraints { max_workers: 3 }"));
  ASSERT_TRUE(recommendation.ok()) << recommendation.status();
  EXPECT_EQ(recommendation->frontier_size(), 3);
  EXPECT_FALSE(recommendation->reason().empty());
  const auto order = client.OptimizeOrder(AboutTiny<v1::OptimizeOrderRequest>("methods: TAC"));
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->orders(0).transfers(0).name(), "recv");
  EXPECT_EQ(order->orders(0).makespan_ns(), 5'000'000);
}

TEST(LocalConnectionTest, TracesPieceByPiece) {
  std::string text;
  const auto take = [&text](std::string_view piece) {
    text += piece;
    return absl::OkStatus();
  };
  ASSERT_TRUE(MakeLocalClient()
                  .GenerateTrace(
                      AboutTiny<v1::GenerateTraceRequest>("options { steps_per_worker: 2 }"), take)
                  .ok());
  // The second step ends after 10 ms.
  EXPECT_THAT(text, testing::HasSubstr(R"("name":"update","ts":9000,"dur":1000,)"));
  EXPECT_THAT(text, testing::EndsWith("]}\n"));
}

TEST(LocalConnectionTest, ATraceEndsWithWhatItsTakerSays) {
  const auto refuse = [](std::string_view) { return absl::DataLossError("the disk is full"); };
  EXPECT_EQ(MakeLocalClient().GenerateTrace(AboutTiny<v1::GenerateTraceRequest>(), refuse),
            absl::DataLossError("the disk is full"));
  const absl::Status bad = MakeLocalClient().GenerateTrace(
      AboutTiny<v1::GenerateTraceRequest>("options { replications: 3 }"), refuse);
  EXPECT_EQ(GetErrorDetails(bad).reason, "REQUEST_INVALID");
  EXPECT_EQ(GetErrorDetails(bad).violations.at(0).field, "options.replications");
}

TEST(LocalConnectionTest, KeepsProfilesAsLongAsItLives) {
  const Client client = MakeLocalClient();
  const auto stored = client.UploadProfile(
      TinyProfile(), Proto<v1::UploadProfileRequest::Header>(R"pb(profile_id: "tiny")pb"));
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->name(), "profiles/tiny");
  const auto get = Proto<v1::GetProfileRequest>(R"pb(name: "profiles/tiny")pb");
  auto read = client.GetProfile(get);
  ASSERT_TRUE(read.ok()) << read.status();
  for (const char* output : {"name", "digest", "etag", "create_time", "update_time", "size_bytes",
                             "operation_count", "step_count"}) {
    read->GetReflection()->ClearField(&*read, v1::Profile::descriptor()->FindFieldByName(output));
  }
  read->mutable_platform()->clear_parsing_overhead();
  EXPECT_THAT(*read, EqualsProto(TinyProfile()));
  EXPECT_EQ(client.ListAllProfiles()->profiles_size(), 1);
  EXPECT_TRUE(
      client
          .PredictThroughput(Proto<v1::PredictThroughputRequest>(R"pb(profile: "profiles/tiny")pb"))
          .ok());
  EXPECT_TRUE(
      client.DeleteProfile(Proto<v1::DeleteProfileRequest>(R"pb(name: "profiles/tiny")pb")).ok());
  EXPECT_TRUE(absl::IsNotFound(client.GetProfile(get).status()));
  EXPECT_EQ(MakeLocalClient().ListAllProfiles()->profiles_size(), 0)
      << "another client is another store";
}

TEST(LocalConnectionTest, ReportsEveryFaultAsAServerDoes) {
  v1::CreateProfileRequest request;
  *request.mutable_profile() = TinyProfile();
  request.mutable_profile()->set_batch_size(0);
  request.mutable_profile()->mutable_operations(1)->set_waiting_for(0, 17);
  const absl::Status status = MakeLocalClient().CreateProfile(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  const ErrorDetails details = GetErrorDetails(status);
  EXPECT_EQ(details.reason, "PROFILE_INVALID");
  EXPECT_EQ(details.domain, "stepcast");
  std::vector<std::string> fields;
  for (const FieldViolation& violation : details.violations) fields.push_back(violation.field);
  EXPECT_THAT(fields, testing::UnorderedElementsAre("profile.batch_size",
                                                    "profile.operations[1].waiting_for[0]"));
}

TEST(LocalConnectionTest, TheTimeoutStopsASimulation) {
  const Client client = MakeLocalClient();
  const auto request = AboutTiny<v1::PredictThroughputRequest>(
      "worker_counts: 64 options { steps_per_worker: 10000000 replications: 1000 }");
  // It would take hours.
  const absl::Status status =
      client.PredictThroughput(request, {.timeout = std::chrono::milliseconds(50)}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST(LocalConnectionTest, BuildsModelsOfTheZoo) {
  const auto made = MakeLocalClient().ImportProfile(Proto<v1::ImportProfileRequest::Header>(R"pb(
    validate_only: true
    labels { key: "team" value: "vision" }
    model_zoo {
      model: "alexnet"
      platform { bandwidth_bytes_per_second: 1e9 }
    })pb"));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(made->profile().operations().empty());
  EXPECT_EQ(made->profile().labels().at("team"), "vision");
}

TEST(LocalConnectionTest, ThreadsShareOneClient) {
  const Client client = MakeLocalClient();
  std::vector<std::thread> threads;
  std::vector<std::string> answers(4);
  for (size_t i = 0; i < answers.size(); ++i) {
    threads.emplace_back([&, i] {
      auto reply = client.PredictThroughput(AboutTiny<v1::PredictThroughputRequest>(
          "worker_counts: 3 options { steps_per_worker: 200 }"));
      ASSERT_TRUE(reply.ok()) << reply.status();
      reply->clear_simulation();  // how long it took
      answers[i] = ToJson(*reply);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& answer : answers) EXPECT_EQ(answer, answers[0]);
}

TEST(LocalConnectionTest, HasNoJobs) {
  const JobClient jobs = MakeLocalClient().Jobs();
  for (const absl::Status& status : {jobs.Start({}).status(), jobs.Get("operations/o").status(),
                                     jobs.Wait("operations/o").status(), jobs.List().status(),
                                     jobs.Cancel("operations/o"), jobs.Delete("operations/o")}) {
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_EQ(GetErrorDetails(status).reason, "NO_JOBS");
  }
}

// So that a method of the contract is not forgotten here.
TEST(LocalConnectionTest, KnowsEveryMethodThatIsNotOfJobs) {
  server::LocalService service;
  for (const Method& method : UnaryMethods()) {
    std::string name = method.path.substr(1);
    name[name.find('/')] = '.';
    const auto* const descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
    ASSERT_NE(descriptor, nullptr) << method.path;
    auto& messages = *google::protobuf::MessageFactory::generated_factory();
    const std::unique_ptr<google::protobuf::Message> request(
        messages.GetPrototype(descriptor->input_type())->New());
    const std::unique_ptr<google::protobuf::Message> response(
        messages.GetPrototype(descriptor->output_type())->New());
    const absl::Status status =
        service.Call(method.path, *request, *response, std::chrono::seconds(10));
    const bool is_of_jobs = method.path.find("Operation") != std::string::npos ||
                            method.path.find("StartJob") != std::string::npos;
    EXPECT_EQ(absl::IsUnimplemented(status), is_of_jobs) << method.path << ": " << status;
  }
}

}  // namespace
}  // namespace stepcast::client::local_connection_test
