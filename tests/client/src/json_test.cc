#include "stepcast/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "google/longrunning/operations.pb.h"
#include "google/rpc/error_details.pb.h"

#include "stepcast/error_details.h"
#include "stepcast/v1/job_service.pb.h"
#include "tests/client/support/random_message.h"
#include "tests/client/support/text_proto.h"

namespace stepcast::client::json_test {
namespace {

using Json = nlohmann::json;

TEST(JsonTest, HasTheNamesOfProtoJsonAndTheDefaultsToo) {
  const Json json = Json::parse(
      ToJson(Proto<v1::PredictThroughputResponse>(R"pb(predictions { examples_per_second: 2.5 }
                                                       simulation {}
                                                       seed: 7)pb")));
  EXPECT_EQ(json["predictions"][0]["examplesPerSecond"], 2.5);
  EXPECT_EQ(json["predictions"][0]["steadyState"], false);
  EXPECT_EQ(json["predictions"][0]["warnings"], Json::array());
  EXPECT_EQ(json["predictions"][0]["bottleneck"], "RESOURCE_UNSPECIFIED");
  EXPECT_EQ(json["seed"], "7") << "64-bit integers are strings in proto JSON";
  EXPECT_EQ(json["simulation"]["cached"], false);
}

TEST(JsonTest, OptionalFieldsAreThereOnlyWhereTheyAreSet) {
  const Json json = Json::parse(
      ToJson(Proto<v1::SimulationOptions>(R"pb(warmup_steps: 0
                                               time_budget { seconds: 1 nanos: 500000000 })pb")));
  EXPECT_EQ(json["warmupSteps"], 0);
  EXPECT_EQ(json["timeBudget"], "1.500s");
  EXPECT_FALSE(json.contains("replications"));
}

google::longrunning::Operation Done() {
  auto job = Proto<google::longrunning::Operation>(R"pb(name: "operations/o-1" done: true)pb");
  job.mutable_metadata()->PackFrom(Proto<v1::JobMetadata>(R"pb(method: "PredictThroughput"
                                                               state: SUCCEEDED)pb"));
  job.mutable_response()->PackFrom(
      Proto<v1::PredictThroughputResponse>("predictions { examples_per_second: 2.5 }"));
  return job;
}

TEST(JsonTest, AJobIsAnOperationThatHoldsItsReply) {
  const Json json = Json::parse(ToJson(Done()));
  EXPECT_EQ(json["name"], "operations/o-1");
  EXPECT_EQ(json["done"], true);
  EXPECT_EQ(json["metadata"]["@type"], "type.googleapis.com/stepcast.v1.JobMetadata");
  EXPECT_EQ(json["metadata"]["state"], "SUCCEEDED");
  EXPECT_EQ(json["response"]["@type"], "type.googleapis.com/stepcast.v1.PredictThroughputResponse");
  EXPECT_EQ(json["response"]["predictions"][0]["examplesPerSecond"], 2.5);
  EXPECT_FALSE(json.contains("error"));
}

TEST(JsonTest, WhatALaterServerPacksIsLeftOutAndTheRestIsThere) {
  google::longrunning::ListOperationsResponse list;
  *list.add_operations() = Done();
  *list.add_operations() = Done();
  list.mutable_operations(0)->mutable_response()->set_type_url(
      "type.googleapis.com/stepcast.v9.Oracle");
  list.mutable_operations(1)->mutable_metadata()->set_value("no message");
  google::rpc::Status& error = *list.add_operations()->mutable_error();
  error.set_message("wrong");
  error.add_details()->set_type_url("type.googleapis.com/stepcast.v9.Detail");
  error.add_details()->PackFrom(Proto<google::rpc::ErrorInfo>(R"pb(reason: "WHY")pb"));
  const Json json = Json::parse(ToJson(list));
  EXPECT_FALSE(json["operations"][0].contains("response"));
  EXPECT_EQ(json["operations"][0]["metadata"]["state"], "SUCCEEDED");
  EXPECT_FALSE(json["operations"][1].contains("metadata"));
  EXPECT_EQ(json["operations"][1]["response"]["predictions"][0]["examplesPerSecond"], 2.5);
  ASSERT_EQ(json["operations"][2]["error"]["details"].size(), 1);
  EXPECT_EQ(json["operations"][2]["error"]["details"][0]["reason"], "WHY");
}

TEST(JsonTest, ATimeOutOfBoundsIsLeftOutAndTheRestIsThere) {
  const Json json =
      Json::parse(ToJson(Proto<v1::Profile>(R"pb(model: "m"
                                                 create_time { seconds: 9000000000000 })pb")));
  EXPECT_FALSE(json.contains("createTime"));
  EXPECT_EQ(json["model"], "m");
  const Json step =
      Json::parse(ToJson(Proto<v1::StepTime>(R"pb(mean { seconds: -9223372036854775808 }
                                                  p50 { seconds: 1 nanos: -1 }
                                                  p95 { seconds: 1 })pb")));
  EXPECT_FALSE(step.contains("mean"));
  EXPECT_FALSE(step.contains("p50"));
  EXPECT_EQ(step["p95"], "1s");
}

TEST(JsonTest, KeysOfMapsAreInOrder) {
  v1::Profile profile;
  for (char c = 'z'; c >= 'a'; --c) (*profile.mutable_labels())[std::string(1, c)] = "v";
  const std::string json = ToJson(profile);
  EXPECT_EQ(json, ToJson(v1::Profile(profile)));
  for (char c = 'a'; c < 'z'; ++c) {
    const auto at = [&](char key) { return json.find(std::string("\"") + key + "\": \"v\""); };
    EXPECT_LT(at(c), at(static_cast<char>(c + 1)));
  }
}

// Held for every field of the contract, whatever the messages will be.
TEST(JsonTest, EveryMessageComesBack) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 generator(seed);
    v1::StartJobRequest request;
    v1::StartJobRequest read;
    FillRandomly(request, generator);
    ASSERT_TRUE(FromJson(ToJson(request), read).ok());
    EXPECT_THAT(read, EqualsProto(request));
    v1::RecommendWorkersResponse response;
    v1::RecommendWorkersResponse read_response;
    FillRandomly(response, generator);
    ASSERT_TRUE(FromJson(ToJson(response), read_response).ok());
    EXPECT_THAT(read_response, EqualsProto(response));
  }
}

TEST(JsonTest, AnUnreadableRequestIsNamedWithItsFault) {
  v1::AllocateWorkersRequest request;
  const absl::Status status = FromJson("{\"jobz\": []}", request);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(GetErrorDetails(status).reason, "REQUEST_UNREADABLE");
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::StartsWith("not an AllocateWorkersRequest in JSON: "),
                             testing::HasSubstr("jobz")));
}

}  // namespace
}  // namespace stepcast::client::json_test
