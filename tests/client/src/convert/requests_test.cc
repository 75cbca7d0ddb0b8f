// What a request says is what the service is told.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/src/convert/allocation_proto.h"
#include "client/src/convert/calibration_proto.h"
#include "client/src/convert/comparison_proto.h"
#include "client/src/convert/order_proto.h"
#include "client/src/convert/prediction_proto.h"
#include "client/src/convert/profile_requests_proto.h"
#include "client/src/convert/recommendation_proto.h"
#include "client/src/convert/trace_proto.h"

namespace stepcast::client::requests_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Names of the fields that a message leaves empty.
std::vector<std::string> EmptyFields(const google::protobuf::Message& message) {
  std::vector<std::string> empty;
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    const bool set = field.is_repeated() ? message.GetReflection()->FieldSize(message, &field) > 0
                                         : message.GetReflection()->HasField(message, &field);
    if (!set && field.real_containing_oneof() == nullptr) empty.push_back(field.name());
  }
  return empty;
}

template <typename Message, typename Struct>
void ExpectIs(const Struct& request, const std::string& text, bool complete = true) {
  Message expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &expected));
  Message message;
  ToProto(request, message);
  google::protobuf::util::MessageDifferencer differencer;
  differencer.set_message_field_comparison(google::protobuf::util::MessageDifferencer::EQUIVALENT);
  std::string difference;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(expected, message)) << difference;
  if (complete) {
    EXPECT_THAT(EmptyFields(message), testing::IsEmpty()) << "the contract has grown";
  }
}

TEST(RequestsTest, Comparison) {
  ExpectIs<v1::CompareModelsRequest>(CompareModelsRequest{.source = "profiles/a",
                                                          .worker_counts = {1, 2},
                                                          .scenario = {.parameter_servers = 2},
                                                          .options = {.seed = 9}},
                                     R"pb(profile: "profiles/a"
                                          worker_counts: [ 1, 2 ]
                                          scenario { parameter_servers: 2 }
                                          options { seed: 9 })pb");
}

TEST(RequestsTest, ParsingMeasurements) {
  ExpectIs<v1::FitParsingOverheadRequest>(
      FitParsingOverheadRequest{.measurements = {{1000, 0.5}, {2000, 0.75}},
                                .confidence_level = 0.9},
      R"pb(measurements { size_bytes: 1000 seconds: 0.5 }
           measurements { size_bytes: 2000 seconds: 0.75 }
           confidence_level: 0.9)pb");
}

TEST(RequestsTest, Allocation) {
  const AllocateWorkersRequest request{
      .jobs = {{.id = "a",
                .source = "profiles/a",
                .scenario = {.parameter_servers = 2},
                .weight = 0.5,
                .min_workers = 0,
                .max_workers = 8,
                .gang = 4,
                .max_parameter_servers = 3,
                .remaining_examples = 100,
                .current =
                    CurrentAllocation{
                        .workers = 4, .rescale_seconds = 1.5, .parameter_servers = 2}}},
      .capacity = ClusterCapacity{.workers = 16, .parameter_servers = 5},
      .objective = AllocationObjective::kMaxMinFair,
      .options = {.seed = 9}};
  const std::string text = R"pb(jobs {
                                  id: "a"
                                  profile: "profiles/a"
                                  scenario { parameter_servers: 2 }
                                  weight: 0.5
                                  min_workers: 0
                                  max_workers: 8
                                  gang: 4
                                  max_parameter_servers: 3
                                  remaining_examples: 100
                                  current { workers: 4 rescale_seconds: 1.5 parameter_servers: 2 }
                                }
                                capacity { workers: 16 parameter_servers: 5 }
                                objective: MAX_MIN_FAIR
                                options { seed: 9 })pb";
  ExpectIs<v1::AllocateWorkersRequest>(request, text);
}

TEST(RequestsTest, AnAllocationMayBeReadFromJson) {
  const absl::StatusOr<AllocateWorkersRequest> request = ParseAllocateWorkersRequest(
      R"({"jobs": [{"id": "a", "profile": "a.json", "minWorkers": 0}], "capacity": {"workers": 16}, "objective": "MIN_MAKESPAN"})");
  ASSERT_TRUE(request.ok()) << request.status();
  const AllocateWorkersRequest expected{.jobs = {{.id = "a", .source = "a.json", .min_workers = 0}},
                                        .capacity = ClusterCapacity{.workers = 16},
                                        .objective = AllocationObjective::kMinMakespan};
  EXPECT_EQ(*request, expected);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseAllocateWorkersRequest(R"({"jobz": []})").status()));
}

TEST(RequestsTest, Prediction) {
  ExpectIs<v1::PredictThroughputRequest>(
      PredictThroughputRequest{.source = "profiles/a",
                               .scenarios = {{.workers = 3}},
                               .worker_counts = {1, 2},
                               .scenario = Scenario{.parameter_servers = 2},
                               .options = {.seed = 9}},
      R"pb(profile: "profiles/a"
           scenarios { workers: 3 }
           worker_counts: [ 1, 2 ]
           scenario { parameter_servers: 2 }
           options { seed: 9 })pb");
}

TEST(RequestsTest, AnInlineProfileTakesThePlaceOfTheName) {
  v1::PredictThroughputRequest message;
  ToProto(PredictThroughputRequest{.source = Profile{.model = "m"}}, message);
  EXPECT_EQ(message.source_case(), v1::PredictThroughputRequest::kInlineProfile);
  EXPECT_EQ(message.inline_profile().model(), "m");
  EXPECT_FALSE(message.has_scenario());
}

TEST(RequestsTest, Recommendation) {
  ExpectIs<v1::RecommendWorkersRequest>(
      RecommendWorkersRequest{
          .source = "profiles/a",
          .scenario = {.parameter_servers = 2},
          .options = {.seed = 9},
          .objective = Objective::kKnee,
          .constraints = Constraints{.min_workers = 1,
                                     .max_workers = 2,
                                     .max_parameter_servers = 3,
                                     .deadline = seconds(4),
                                     .examples = 5,
                                     .budget = 6,
                                     .min_scaling_efficiency = 0.7},
          .prices = Prices{.worker_hour = 1, .parameter_server_hour = 2, .currency_code = "EUR"},
          .current = CurrentAllocation{.workers = 3, .rescale_seconds = 4, .parameter_servers = 5}},
      R"pb(profile: "profiles/a"
           scenario { parameter_servers: 2 }
           options { seed: 9 }
           objective: KNEE
           constraints {
             min_workers: 1
             max_workers: 2
             max_parameter_servers: 3
             deadline { seconds: 4 }
             examples: 5
             budget: 6
             min_scaling_efficiency: 0.7
           }
           prices { worker_hour: 1 parameter_server_hour: 2 currency_code: "EUR" }
           current { workers: 3 rescale_seconds: 4 parameter_servers: 5 })pb");
}

TEST(RequestsTest, Order) {
  ExpectIs<v1::OptimizeOrderRequest>(
      OptimizeOrderRequest{.source = "profiles/a",
                           .scenario = Scenario{.workers = 2},
                           .options = {.seed = 9},
                           .methods = {OrderMethod::kTac, OrderMethod::kSearch},
                           .time_budget = milliseconds(1500),
                           .inference = true},
      R"pb(profile: "profiles/a"
           scenario { workers: 2 }
           options { seed: 9 }
           methods: [ TAC, SEARCH ]
           time_budget { seconds: 1 nanos: 500000000 }
           inference: true)pb");
}

TEST(RequestsTest, Trace) {
  ExpectIs<v1::GenerateTraceRequest>(GenerateTraceRequest{.source = "profiles/a",
                                                          .scenario = Scenario{.workers = 2},
                                                          .options = {.steps_per_worker = 3}},
                                     R"pb(profile: "profiles/a"
                                          scenario { workers: 2 }
                                          options { steps_per_worker: 3 })pb");
}

TEST(RequestsTest, LayerProfile) {
  ExpectIs<v1::LayerProfileOptions>(
      LayerProfileOptions{.model = "vgg",
                          .batch_size = 64,
                          .platform = {.bandwidth_bytes_per_second = 1e9, .window_bytes = 5},
                          .step_time_variation = 0.1,
                          .common_time_variation = 0.2,
                          .steps = 3,
                          .seed = 4},
      R"pb(model: "vgg"
           batch_size: 64
           platform {
             bandwidth_bytes_per_second: 1e9
             parsing_overhead {}
             window_bytes: 5
           }
           step_time_variation: 0.1
           common_time_variation: 0.2
           steps: 3
           seed: 4)pb");
}

TEST(RequestsTest, ZooModel) {
  ExpectIs<v1::ModelZooOptions>(ModelZooOptions{.model = "vgg16",
                                                .batch_size = 64,
                                                .platform = {.bandwidth_bytes_per_second = 1e9},
                                                .device_flops_per_second = 2e12,
                                                .step_time_variation = 0.0,
                                                .common_time_variation = 0.1,
                                                .steps = 3,
                                                .seed = 4},
                                R"pb(model: "vgg16"
                                     batch_size: 64
                                     platform {
                                       bandwidth_bytes_per_second: 1e9
                                       parsing_overhead {}
                                     }
                                     device_flops_per_second: 2e12
                                     step_time_variation: 0.0
                                     common_time_variation: 0.1
                                     steps: 3
                                     seed: 4)pb");
}

TEST(RequestsTest, RecordingsOfTensorflow) {
  ExpectIs<v1::RunMetadataOptions>(
      RunMetadataOptions{
          .model = "m", .batch_size = 3, .platform = {.bandwidth_bytes_per_second = 1e9}},
      R"pb(model: "m"
           batch_size: 3
           platform {
             bandwidth_bytes_per_second: 1e9
             parsing_overhead {}
           })pb");
  ExpectIs<v1::TimelineOptions>(TimelineOptions{.model = "m",
                                                .batch_size = 3,
                                                .platform = {.bandwidth_bytes_per_second = 1e9},
                                                .variable_bytes = {{"w", 8}},
                                                .step_time_variation = 0.1,
                                                .common_time_variation = 0.2,
                                                .steps = 3,
                                                .seed = 4},
                                R"pb(model: "m"
                                     batch_size: 3
                                     platform {
                                       bandwidth_bytes_per_second: 1e9
                                       parsing_overhead {}
                                     }
                                     variable_bytes { key: "w" value: 8 }
                                     step_time_variation: 0.1
                                     common_time_variation: 0.2
                                     steps: 3
                                     seed: 4)pb");
}

TEST(RequestsTest, ImportHeader) {
  ExpectIs<v1::ImportProfileRequest::Header>(
      ImportOptions{.store = {.profile_id = "a", .request_id = "b", .validate_only = true},
                    .display_name = "c",
                    .labels = {{"k", "v"}}},
      R"pb(profile_id: "a"
           request_id: "b"
           validate_only: true
           display_name: "c"
           labels { key: "k" value: "v" })pb");
}

TEST(RequestsTest, StoredProfiles) {
  ExpectIs<v1::GetProfileRequest>(
      GetProfileRequest{.name = "profiles/a", .view = ProfileView::kBasic}, R"pb(name: "profiles/a"
                                                                                 view: BASIC)pb");
  ExpectIs<v1::ListProfilesRequest>(
      ListProfilesRequest{
          .page_size = 7, .page_token = "t", .filter = "f", .view = ProfileView::kBasic},
      R"pb(page_size: 7 page_token: "t" filter: "f" view: BASIC)pb");
  ExpectIs<v1::DeleteProfileRequest>(DeleteProfileRequest{.name = "profiles/a", .etag = "e"},
                                     R"pb(name: "profiles/a" etag: "e")pb");
}

}  // namespace
}  // namespace stepcast::client::requests_test
