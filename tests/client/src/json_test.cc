#include "stepcast/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace stepcast::client::json_test {
namespace {

using Json = nlohmann::json;

TEST(JsonTest, HasTheNamesOfProtoJsonAndTheDefaultsToo) {
  const Json json = Json::parse(
      ToJson(PredictThroughputResponse{.predictions = {{.examples_per_second = 2.5}}, .seed = 7}));
  EXPECT_EQ(json["predictions"][0]["examplesPerSecond"], 2.5);
  EXPECT_EQ(json["predictions"][0]["steadyState"], false);
  EXPECT_EQ(json["predictions"][0]["warning"], "");
  EXPECT_EQ(json["predictions"][0]["bottleneck"], "RESOURCE_UNSPECIFIED");
  EXPECT_EQ(json["seed"], "7") << "64-bit integers are strings in proto JSON";
  EXPECT_EQ(json["simulation"]["cached"], false);
}

TEST(JsonTest, OptionalFieldsAreThereOnlyWhereTheyAreSet) {
  const Json json = Json::parse(
      ToJson(SimulationOptions{.warmup_steps = 0, .time_budget = std::chrono::milliseconds(1500)}));
  EXPECT_EQ(json["warmupSteps"], 0);
  EXPECT_EQ(json["timeBudget"], "1.500s");
  EXPECT_FALSE(json.contains("replications"));
}

TEST(JsonTest, AnOrderReadsAsTheContractSays) {
  const OptimizeOrderResponse response{
      .orders = {{.method = OrderMethod::kTac,
                  .transfers = {{.name = "recv/a", .rank = 0, .size_bytes = 12}},
                  .makespan_ns = 5}},
      .chosen = OrderMethod::kTac};
  const Json json = Json::parse(ToJson(response));
  EXPECT_EQ(json["orders"][0]["method"], "TAC");
  EXPECT_EQ(json["orders"][0]["makespanNs"], "5");
  EXPECT_EQ(json["orders"][0]["transfers"][0]["name"], "recv/a");
  EXPECT_EQ(json["chosen"], "TAC");
}

TEST(JsonTest, AJobIsAnOperationThatHoldsItsReply) {
  const Json json = Json::parse(ToJson(
      Job{.name = "operations/o-1",
          .method = "PredictThroughput",
          .state = JobState::kSucceeded,
          .done = true,
          .reply = PredictThroughputResponse{.predictions = {{.examples_per_second = 2.5}}}}));
  EXPECT_EQ(json["name"], "operations/o-1");
  EXPECT_EQ(json["done"], true);
  EXPECT_EQ(json["metadata"]["@type"], "type.googleapis.com/stepcast.v1.JobMetadata");
  EXPECT_EQ(json["metadata"]["state"], "SUCCEEDED");
  EXPECT_EQ(json["response"]["@type"], "type.googleapis.com/stepcast.v1.PredictThroughputResponse");
  EXPECT_EQ(json["response"]["predictions"][0]["examplesPerSecond"], 2.5);
  EXPECT_FALSE(json.contains("error"));
}

TEST(JsonTest, KeysOfMapsAreInOrder) {
  Profile profile;
  for (char c = 'z'; c >= 'a'; --c) profile.labels[std::string(1, c)] = "v";
  const std::string json = ToJson(profile);
  EXPECT_EQ(json, ToJson(Profile(profile)));
  for (char c = 'a'; c < 'z'; ++c) {
    const auto at = [&](char key) { return json.find(std::string("\"") + key + "\": \"v\""); };
    EXPECT_LT(at(c), at(static_cast<char>(c + 1)));
  }
}

}  // namespace
}  // namespace stepcast::client::json_test
