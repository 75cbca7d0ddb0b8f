#include "client/local/local_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "stepcast/error_details.h"
#include "stepcast/json.h"
#include "tests/client/support/tiny_profile.h"

namespace stepcast::client::local_client_test {
namespace {

TEST(LocalClientTest, PredictsWhatCanBeWorkedOutByHand) {
  const auto reply =
      MakeLocalClient().PredictThroughput({.source = TinyProfile(), .worker_counts = {1}});
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->predictions.size(), 1);
  const Prediction& prediction = reply->predictions[0];
  EXPECT_NEAR(prediction.steps_per_second, 200, 1e-6);
  EXPECT_NEAR(prediction.examples_per_second, 2000, 1e-5);
  // Percentiles are exact to 0.1 %.
  EXPECT_NEAR(static_cast<double>(prediction.step_time.p50.count()), 5e6, 5e3);
  EXPECT_EQ(prediction.scenario.workers, 1);
  EXPECT_EQ(prediction.scenario.bandwidth_bytes_per_second, 1e6);
  EXPECT_EQ(prediction.bottleneck, Resource::kWorker);
  EXPECT_EQ(reply->options.steps_per_worker, 1000);
}

TEST(LocalClientTest, TheScenarioReachesTheEngine) {
  const Client client = MakeLocalClient();
  const auto slow =
      client.PredictThroughput({.source = TinyProfile(),
                                .worker_counts = {1},
                                .scenario = Scenario{.bandwidth_bytes_per_second = 5e5}});
  ASSERT_TRUE(slow.ok()) << slow.status();
  // Both transfers take twice as long: 7 ms.
  EXPECT_NEAR(slow->predictions[0].steps_per_second, 1000.0 / 7, 1e-6);
}

TEST(LocalClientTest, RecommendsAndOrders) {
  const Client client = MakeLocalClient();
  const auto recommendation = client.RecommendWorkers(
      {.source = TinyProfile(), .constraints = Constraints{.max_workers = 3}});
  ASSERT_TRUE(recommendation.ok()) << recommendation.status();
  EXPECT_EQ(recommendation->frontier.size(), 3);
  EXPECT_FALSE(recommendation->reason.empty());
  const auto order =
      client.OptimizeOrder({.source = TinyProfile(), .methods = {OrderMethod::kTac}});
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->orders.at(0).transfers.at(0).name, "recv");
  EXPECT_EQ(order->orders.at(0).makespan_ns, 5'000'000);
}

TEST(LocalClientTest, TracesPieceByPiece) {
  std::string text;
  const auto take = [&text](std::string_view piece) {
    text += piece;
    return absl::OkStatus();
  };
  ASSERT_TRUE(
      MakeLocalClient()
          .GenerateTrace({.source = TinyProfile(), .options = {.steps_per_worker = 2}}, take)
          .ok());
  // The second step ends after 10 ms.
  EXPECT_THAT(text, testing::HasSubstr(R"("name":"update","ts":9000,"dur":1000,)"));
  EXPECT_THAT(text, testing::EndsWith("]}\n"));
}

TEST(LocalClientTest, ATraceEndsWithWhatItsTakerSays) {
  const auto refuse = [](std::string_view) { return absl::DataLossError("the disk is full"); };
  EXPECT_EQ(MakeLocalClient().GenerateTrace({.source = TinyProfile()}, refuse),
            absl::DataLossError("the disk is full"));
  const absl::Status bad = MakeLocalClient().GenerateTrace(
      {.source = TinyProfile(), .options = {.replications = 3}}, refuse);
  EXPECT_EQ(GetErrorDetails(bad).reason, "REQUEST_INVALID");
  EXPECT_EQ(GetErrorDetails(bad).violations.at(0).field, "options.replications");
}

TEST(LocalClientTest, KeepsProfilesAsLongAsItLives) {
  const Client client = MakeLocalClient();
  const auto stored = client.UploadProfile(TinyProfile(), {.profile_id = "tiny"});
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->name, "profiles/tiny");
  const auto read = client.GetProfile({.name = "profiles/tiny"});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->operations, TinyProfile().operations);
  EXPECT_EQ(read->steps, TinyProfile().steps);
  EXPECT_EQ(client.ListAllProfiles()->size(), 1);
  EXPECT_TRUE(client.PredictThroughput({.source = "profiles/tiny"}).ok());
  EXPECT_TRUE(client.DeleteProfile({.name = "profiles/tiny"}).ok());
  EXPECT_TRUE(absl::IsNotFound(client.GetProfile({.name = "profiles/tiny"}).status()));
  EXPECT_EQ(MakeLocalClient().ListAllProfiles()->size(), 0) << "another client is another store";
}

TEST(LocalClientTest, ReportsEveryFaultAsAServerDoes) {
  Profile profile = TinyProfile();
  profile.batch_size = 0;
  profile.operations[1].waiting_for = {17};
  const absl::Status status = MakeLocalClient().CreateProfile(profile).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  const ErrorDetails details = GetErrorDetails(status);
  EXPECT_EQ(details.reason, "PROFILE_INVALID");
  EXPECT_EQ(details.domain, "stepcast");
  std::vector<std::string> fields;
  for (const FieldViolation& violation : details.violations) fields.push_back(violation.field);
  EXPECT_THAT(fields, testing::UnorderedElementsAre("profile.batch_size",
                                                    "profile.operations[1].waiting_for[0]"));
}

TEST(LocalClientTest, TheTimeoutStopsASimulation) {
  const Client client = MakeLocalClient();
  const PredictThroughputRequest request{
      .source = TinyProfile(),
      .worker_counts = {64},
      .options = {.steps_per_worker = 10'000'000, .replications = 1000}};
  // It would take hours.
  const absl::Status status =
      client.PredictThroughput(request, {.timeout = std::chrono::milliseconds(50)}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST(LocalClientTest, BuildsModelsOfTheZoo) {
  const auto made = MakeLocalClient().ImportZooModel(
      {.model = "alexnet", .platform = {.bandwidth_bytes_per_second = 1e9}},
      {.store = {.validate_only = true}, .labels = {{"team", "vision"}}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(made->profile.operations.empty());
  EXPECT_EQ(made->profile.labels.at("team"), "vision");
}

TEST(LocalClientTest, ThreadsShareOneClient) {
  const Client client = MakeLocalClient();
  std::vector<std::thread> threads;
  std::vector<std::string> answers(4);
  for (size_t i = 0; i < answers.size(); ++i) {
    threads.emplace_back([&, i] {
      auto reply = client.PredictThroughput(
          {.source = TinyProfile(), .worker_counts = {3}, .options = {.steps_per_worker = 200}});
      ASSERT_TRUE(reply.ok()) << reply.status();
      reply->simulation = {};  // how long it took
      answers[i] = ToJson(*reply);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& answer : answers) EXPECT_EQ(answer, answers[0]);
}

}  // namespace
}  // namespace stepcast::client::local_client_test
