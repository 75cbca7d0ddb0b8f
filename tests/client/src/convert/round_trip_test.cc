// Nothing of the contract is lost or mixed up between messages and structs.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "client/src/convert/allocation_proto.h"
#include "client/src/convert/calibration_proto.h"
#include "client/src/convert/comparison_proto.h"
#include "client/src/convert/duration_proto.h"
#include "client/src/convert/order_proto.h"
#include "client/src/convert/prediction_proto.h"
#include "client/src/convert/profile_proto.h"
#include "client/src/convert/profile_requests_proto.h"
#include "client/src/convert/recommendation_proto.h"
#include "client/src/convert/scenario_proto.h"

#include "tests/client/support/random_message.h"

namespace stepcast::client::round_trip_test {
namespace {

using google::protobuf::util::MessageDifferencer;

// A pair of types that stand for the same thing.
template <typename M, typename S>
struct Pair {
  using Message = M;
  using Struct = S;
};

template <typename P>
class RoundTripTest : public testing::Test {};

using Pairs =
    testing::Types<Pair<v1::Profile, Profile>, Pair<v1::Scenario, Scenario>,
                   Pair<v1::SimulationOptions, SimulationOptions>, Pair<v1::Prediction, Prediction>,
                   Pair<v1::PredictThroughputResponse, PredictThroughputResponse>,
                   Pair<v1::RecommendWorkersResponse, RecommendWorkersResponse>,
                   Pair<v1::TransferOrderResult, TransferOrderResult>,
                   Pair<v1::OptimizeOrderResponse, OptimizeOrderResponse>,
                   Pair<v1::CompareModelsResponse, CompareModelsResponse>,
                   Pair<v1::FitParsingOverheadResponse, FitParsingOverheadResponse>,
                   Pair<v1::AllocationJob, AllocationJob>,
                   Pair<v1::ImportProfileResponse, ImportProfileResponse>,
                   Pair<v1::ListProfilesResponse, ListProfilesResponse>>;
TYPED_TEST_SUITE(RoundTripTest, Pairs);

// Messages without presence come back even where they were absent, as the defaults they stand for.
template <typename Message>
std::string Difference(const Message& sent, const Message& back) {
  MessageDifferencer differencer;
  differencer.set_message_field_comparison(MessageDifferencer::EQUIVALENT);
  std::string difference;
  differencer.ReportDifferencesToString(&difference);
  return differencer.Compare(sent, back) ? "" : difference;
}

TYPED_TEST(RoundTripTest, EveryFieldComesBack) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 generator(seed);
    typename TypeParam::Message message;
    FillRandomly(message, generator, /*all=*/true);
    typename TypeParam::Struct value;
    FromProto(message, value);
    typename TypeParam::Message back;
    ToProto(value, back);
    ASSERT_EQ(Difference(message, back), "");
  }
}

// An error that is no random message, but one of the service's.
void MakeErrorsReal(v1::AllocateWorkersResponse& message) {
  for (v1::JobAllocation& job : *message.mutable_allocations()) {
    job.mutable_error()->set_code(3);
    google::protobuf::Any detail;
    detail.set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
    detail.set_value("");
    job.mutable_error()->mutable_details()->Clear();
    *job.mutable_error()->add_details() = detail;
  }
}

TEST(AllocationRoundTripTest, EveryFieldComesBack) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 generator(seed);
    v1::AllocateWorkersResponse message;
    FillRandomly(message, generator, /*all=*/true);
    MakeErrorsReal(message);
    AllocateWorkersResponse value;
    FromProto(message, value);
    v1::AllocateWorkersResponse back;
    ToProto(value, back);
    ASSERT_EQ(Difference(message, back), "");
  }
}

// Whether a field that the contract calls `optional` was set survives, so that 0 and unset differ.
template <typename Message, typename Struct>
void ExpectPresenceSurvives() {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 generator(seed);
    Message message;
    FillRandomly(message, generator);
    Struct value;
    FromProto(message, value);
    Message back;
    ToProto(value, back);
    ASSERT_TRUE(MessageDifferencer::Equals(message, back))
        << message.DebugString() << "came back as\n"
        << back.DebugString();
  }
}

TEST(PresenceTest, OptionalFieldsOfScenariosSurvive) {
  ExpectPresenceSurvives<v1::Scenario, Scenario>();
}

TEST(PresenceTest, OptionalFieldsOfOptionsSurvive) {
  ExpectPresenceSurvives<v1::SimulationOptions, SimulationOptions>();
}

TEST(PresenceTest, AnExplicitZeroStaysSet) {
  SimulationOptions options;
  options.warmup_steps = 0;
  options.seed = 0;
  v1::SimulationOptions message;
  ToProto(options, message);
  EXPECT_TRUE(message.has_warmup_steps());
  EXPECT_TRUE(message.has_seed());
  EXPECT_FALSE(message.has_replications());
}

TEST(PresenceTest, AnInfeasibleRecommendationHasNoPrediction) {
  v1::RecommendWorkersResponse message;
  message.set_infeasible_reason("too few");
  RecommendWorkersResponse response;
  FromProto(message, response);
  EXPECT_EQ(response.prediction, std::nullopt);
  EXPECT_EQ(response.nearest, std::nullopt);
  EXPECT_EQ(response.cost, std::nullopt);
  EXPECT_EQ(response.duration, std::nullopt);
}

TEST(DurationTest, WhatIsLongerThanNanosecondsCountIsTheLongest) {
  v1::StepTime message;
  message.mutable_mean()->set_seconds(315'576'000'000);
  message.mutable_p50()->set_seconds(-315'576'000'000);
  StepTime time;
  FromProto(message, time);
  EXPECT_EQ(time.mean, std::chrono::nanoseconds::max());
  EXPECT_EQ(time.p50, std::chrono::nanoseconds::min());
}

TEST(UnknownEnumTest, AValueOfALaterServerIsKept) {
  v1::Prediction message;
  message.set_bottleneck(static_cast<v1::Operation::Resource>(17));
  Prediction prediction;
  FromProto(message, prediction);
  EXPECT_EQ(static_cast<int>(prediction.bottleneck), 17);
  EXPECT_EQ(ResourceName(prediction.bottleneck), "RESOURCE_UNSPECIFIED");
}

TEST(TimestampTest, TheEarliestAndTheLatestTimeComeBack) {
  for (const int64_t seconds :
       {int64_t{-1'000'000'000'000}, int64_t{-1}, int64_t{0}, int64_t{1'000'000'000'000}}) {
    google::protobuf::Timestamp sent;
    sent.set_seconds(seconds);
    sent.set_nanos(1);
    SystemNanoseconds time;
    FromProto(sent, time);
    google::protobuf::Timestamp written;
    ToProto(time, written);
    EXPECT_GE(written.nanos(), 0) << seconds;
    SystemNanoseconds back;
    FromProto(written, back);
    EXPECT_EQ(back, time) << seconds;
  }
}

}  // namespace
}  // namespace stepcast::client::round_trip_test
