#include "server/convert/prediction_convert.h"

#include <gtest/gtest.h>

#include "server/convert/profile_convert.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server::prediction_convert_test {
namespace {

TEST(PredictionConvertTest, TheProfileComesFromWhereTheRequestSays) {
  v1::PredictThroughputRequest wire;
  EXPECT_TRUE(std::holds_alternative<std::monostate>(FromWire(wire).source));
  wire.set_profile("profiles/a");
  EXPECT_EQ(std::get<std::string>(FromWire(wire).source), "profiles/a");
  *wire.mutable_inline_profile() = ToWire(RandomProfile(1));
  EXPECT_TRUE(std::get<ProfileInput>(FromWire(wire).source).draft == RandomProfile(1));
}

TEST(PredictionConvertTest, PredictThroughputCarriesScenariosCountsAndOptions) {
  v1::PredictThroughputRequest wire;
  wire.add_scenarios()->set_workers(2);
  wire.add_scenarios()->set_workers(3);
  wire.add_worker_counts(4);
  wire.mutable_scenario()->set_workers(5);
  wire.mutable_options()->set_seed(6);
  const ThroughputDraft draft = FromWire(wire).draft;
  ASSERT_EQ(draft.scenarios.size(), 2U);
  EXPECT_EQ(draft.scenarios[1].workers, 3);
  EXPECT_EQ(draft.worker_counts, std::vector<int32_t>{4});
  EXPECT_EQ(draft.scenario->workers, 5);
  EXPECT_EQ(draft.options.seed, 6U);
  EXPECT_FALSE(FromWire(v1::PredictThroughputRequest()).draft.scenario.has_value());
}

TEST(PredictionConvertTest, FaultsHaveTheRequestsPaths) {
  v1::PredictThroughputRequest wire;
  wire.add_scenarios();
  wire.add_scenarios()->mutable_parameter_servers()->set_transfer_order(
      static_cast<v1::ParameterServers::TransferOrder>(50));
  wire.mutable_options()->set_start(static_cast<v1::SimulationOptions::Start>(51));
  const std::vector<Fault> faults = FromWire(wire).faults;
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].field, "scenarios[1].parameter_servers.transfer_order");
  EXPECT_EQ(faults[1].field, "options.start");
}

Prediction SomePrediction() {
  return {.scenario = {.workers = 4},
          .examples_per_second = 1,
          .steps_per_second = 2,
          .confidence_interval = {.lower = 3, .upper = 4, .level = 0.9},
          .step_time = {.mean = 5, .p50 = 6, .p95 = 7, .p99 = 8},
          .speedup = 9,
          .scaling_efficiency = 10,
          .utilization = {{.resource = Resource::kUplink, .index = 1, .fraction = 0.5}},
          .bottleneck = {.resource = Resource::kDownlink, .index = 2, .fraction = 0.6},
          .exposed_communication_fraction = 11,
          .steady_state = false,
          .warnings = {{.reason = Warning::Reason::kTwoRegimes, .message = "careful"},
                       {.reason = Warning::Reason::kOneReplication, .message = "one run"}},
          .replications = 12};
}

TEST(PredictionConvertTest, APredictionCarriesEverything) {
  const v1::Prediction wire = ToWire(SomePrediction());
  EXPECT_EQ(wire.scenario().workers(), 4);
  EXPECT_EQ(wire.examples_per_second(), 1);
  EXPECT_EQ(wire.steps_per_second(), 2);
  EXPECT_EQ(wire.confidence_interval().lower(), 3);
  EXPECT_EQ(wire.confidence_interval().upper(), 4);
  EXPECT_EQ(wire.confidence_interval().level(), 0.9);
  EXPECT_EQ(wire.step_time().mean().seconds(), 5);
  EXPECT_EQ(wire.step_time().p50().seconds(), 6);
  EXPECT_EQ(wire.step_time().p95().seconds(), 7);
  EXPECT_EQ(wire.step_time().p99().seconds(), 8);
  EXPECT_EQ(wire.speedup(), 9);
  EXPECT_EQ(wire.scaling_efficiency(), 10);
  ASSERT_EQ(wire.utilization_size(), 1);
  EXPECT_EQ(wire.utilization(0).resource(), v1::Operation::UPLINK);
  EXPECT_EQ(wire.utilization(0).index(), 1);
  EXPECT_EQ(wire.utilization(0).fraction(), 0.5);
  EXPECT_EQ(wire.bottleneck(), v1::Operation::DOWNLINK);
  EXPECT_EQ(wire.bottleneck_index(), 2);
  EXPECT_EQ(wire.exposed_communication_fraction(), 11);
  EXPECT_FALSE(wire.steady_state());
  ASSERT_EQ(wire.warnings_size(), 2);
  EXPECT_EQ(wire.warnings(0).reason(), v1::Warning::TWO_REGIMES);
  EXPECT_EQ(wire.warnings(0).message(), "careful");
  EXPECT_EQ(wire.warnings(1).reason(), v1::Warning::ONE_REPLICATION);
  EXPECT_EQ(wire.replications(), 12);
}

AnswerContext SomeContext() {
  return {.options = {.seed = 42}, .profile_digest = "digest", .engine_seconds = 1.5};
}

TEST(PredictionConvertTest, AThroughputAnswerEchoesWhatItWasComputedWith) {
  PredictThroughputAnswer answer{.context = SomeContext()};
  answer.answer.predictions = {SomePrediction(), SomePrediction()};
  answer.answer.simulation = {.simulated_operations = 13, .engine_path = "plain, memoised"};
  const v1::PredictThroughputResponse wire = ToWire(answer);
  EXPECT_EQ(wire.predictions_size(), 2);
  EXPECT_EQ(wire.simulation().simulated_operations(), 13);
  EXPECT_EQ(wire.simulation().engine_seconds(), 1.5);
  EXPECT_EQ(wire.simulation().engine_path(), "plain, memoised");
  EXPECT_EQ(wire.options().seed(), 42U);
  EXPECT_EQ(wire.seed(), 42U);
  EXPECT_EQ(wire.profile_digest(), "digest");
  EXPECT_EQ(wire.engine_version(), kEngineVersion);
}

}  // namespace
}  // namespace stepcast::server::prediction_convert_test
