#include "server/convert/comparison_convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::server::comparison_convert_test {
namespace {

using ::testing::ElementsAre;

TEST(ComparisonConvertTest, CompareModelsCarriesEverything) {
  v1::CompareModelsRequest wire;
  wire.set_profile("profiles/p");
  wire.add_worker_counts(3);
  wire.add_worker_counts(1);
  wire.mutable_scenario()->mutable_parameter_servers()->set_servers(2);
  wire.mutable_options()->set_seed(5);
  const CompareModelsCall call = FromWire(wire);
  EXPECT_EQ(std::get<std::string>(call.source), "profiles/p");
  EXPECT_THAT(call.draft.worker_counts, ElementsAre(3, 1));
  EXPECT_EQ(call.draft.scenario.servers().servers, 2);
  EXPECT_EQ(call.draft.options.seed, 5U);
}

TEST(ComparisonConvertTest, AComparisonCarriesEverything) {
  CompareModelsAnswer answer{
      .context = {.options = {.seed = 42}, .profile_digest = "digest", .engine_seconds = 1.5}};
  const ComparedPrediction rival{.model = ComparedModel::kCynthiaHalved,
                                 .examples_per_second = 1,
                                 .steps_per_second = 2,
                                 .relative_difference = -0.3,
                                 .within_interval = true,
                                 .unavailable_reason = "because"};
  answer.answer.comparisons = {{.prediction = {.scenario = {.workers = 4}}, .rivals = {rival}}};
  answer.answer.inputs = {
      .phases = {.downlink = 1, .worker = 2, .uplink = 3, .parameter_server = 4},
      .cynthia = {.computation_seconds = 6, .transfer_seconds = 2}};
  const v1::CompareModelsResponse wire = ToWire(answer);
  ASSERT_EQ(wire.comparisons_size(), 1);
  EXPECT_EQ(wire.comparisons(0).workers(), 4);
  EXPECT_EQ(wire.comparisons(0).prediction().scenario().workers(), 4);
  const v1::ModelPrediction& model = wire.comparisons(0).models(0);
  EXPECT_EQ(model.model(), v1::ModelPrediction::CYNTHIA_HALVED);
  EXPECT_EQ(model.examples_per_second(), 1);
  EXPECT_EQ(model.steps_per_second(), 2);
  EXPECT_EQ(model.relative_difference(), -0.3);
  EXPECT_TRUE(model.within_interval());
  EXPECT_EQ(model.unavailable_reason(), "because");
  EXPECT_EQ(wire.inputs().downlink_phase_seconds(), 1);
  EXPECT_EQ(wire.inputs().worker_phase_seconds(), 2);
  EXPECT_EQ(wire.inputs().uplink_phase_seconds(), 3);
  EXPECT_EQ(wire.inputs().parameter_server_phase_seconds(), 4);
  EXPECT_EQ(wire.inputs().computation_seconds(), 6);
  EXPECT_EQ(wire.inputs().transfer_seconds(), 2);
  EXPECT_DOUBLE_EQ(wire.inputs().network_utilization(), 0.4);
  EXPECT_DOUBLE_EQ(wire.inputs().halved_network_utilization(), 0.25);
  EXPECT_EQ(wire.options().seed(), 42U);
  EXPECT_EQ(wire.profile_digest(), "digest");
}

}  // namespace
}  // namespace stepcast::server::comparison_convert_test
