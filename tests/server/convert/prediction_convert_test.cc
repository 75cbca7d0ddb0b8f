#include "server/convert/prediction_convert.h"

#include <gtest/gtest.h>

#include "server/convert/profile_convert.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server {
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
  wire.add_scenarios()->set_transfer_order(static_cast<v1::Scenario::TransferOrder>(50));
  wire.mutable_options()->set_start(static_cast<v1::SimulationOptions::Start>(51));
  const std::vector<Fault> faults = FromWire(wire).faults;
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].field, "scenarios[1].transfer_order");
  EXPECT_EQ(faults[1].field, "options.start");
}

TEST(PredictionConvertTest, RecommendWorkersCarriesEveryConstraint) {
  v1::RecommendWorkersRequest wire;
  wire.set_objective(v1::RecommendWorkersRequest::MIN_COST);
  v1::Constraints& constraints = *wire.mutable_constraints();
  constraints.set_min_workers(1);
  constraints.set_max_workers(2);
  constraints.set_max_parameter_servers(3);
  constraints.mutable_deadline()->set_seconds(4);
  constraints.set_examples(5);
  constraints.set_budget(6);
  constraints.set_min_scaling_efficiency(0.7);
  wire.mutable_prices()->set_worker_hour(8);
  wire.mutable_prices()->set_parameter_server_hour(9);
  wire.mutable_prices()->set_currency_code("EUR");
  wire.mutable_current()->set_workers(10);
  wire.mutable_current()->set_rescale_seconds(11);
  const RecommendationDraft draft = FromWire(wire).draft;
  EXPECT_EQ(draft.objective, Objective::kMinCost);
  EXPECT_EQ(draft.min_workers, 1);
  EXPECT_EQ(draft.max_workers, 2);
  EXPECT_EQ(draft.max_parameter_servers, 3);
  EXPECT_EQ(draft.deadline_seconds, 4);
  EXPECT_EQ(draft.examples, 5);
  EXPECT_EQ(draft.budget, 6);
  EXPECT_EQ(draft.min_scaling_efficiency, 0.7);
  EXPECT_EQ(draft.prices->worker_hour, 8);
  EXPECT_EQ(draft.prices->parameter_server_hour, 9);
  EXPECT_EQ(draft.prices->currency_code, "EUR");
  EXPECT_EQ(draft.current->workers, 10);
  EXPECT_EQ(draft.current->rescale_seconds, 11);
}

TEST(PredictionConvertTest, UnsetConstraintsStayUnset) {
  const RecommendationDraft draft = FromWire(v1::RecommendWorkersRequest()).draft;
  EXPECT_EQ(draft.objective, Objective::kKnee);
  EXPECT_FALSE(draft.min_workers || draft.max_workers || draft.max_parameter_servers || draft.deadline_seconds || draft.examples || draft.budget);
  EXPECT_FALSE(draft.min_scaling_efficiency || draft.prices || draft.current);
}

TEST(PredictionConvertTest, OptimizeOrderRefusesMethodsItDoesNotKnow) {
  v1::OptimizeOrderRequest wire;
  wire.add_methods(v1::TAC);
  wire.add_methods(v1::ORDER_METHOD_UNSPECIFIED);
  wire.add_methods(static_cast<v1::OrderMethod>(70));
  wire.mutable_time_budget()->set_seconds(2);
  const OptimizeOrderCall call = FromWire(wire);
  EXPECT_EQ(call.draft.methods, std::vector<OrderMethod>{OrderMethod::kTac});
  ASSERT_EQ(call.faults.size(), 2U);
  EXPECT_EQ(call.faults[0].field, "methods[1]");
  EXPECT_EQ(call.faults[1].field, "methods[2]");
  EXPECT_EQ(call.time_budget_seconds, 2);
}

TEST(PredictionConvertTest, GenerateTraceTakesItsScenarioAndOptions) {
  v1::GenerateTraceRequest wire;
  wire.set_profile("profiles/a");
  wire.mutable_scenario()->set_workers(3);
  wire.mutable_options()->set_steps_per_worker(2);
  wire.mutable_options()->set_start(static_cast<v1::SimulationOptions::Start>(9));
  const GenerateTraceCall call = FromWire(wire);
  EXPECT_EQ(std::get<std::string>(call.source), "profiles/a");
  EXPECT_EQ(call.draft.scenario.workers, 3);
  EXPECT_EQ(call.draft.options.steps_per_worker, 2);
  ASSERT_EQ(call.faults.size(), 1U);
  EXPECT_EQ(call.faults[0].field, "options.start");
}

Prediction SomePrediction() {
  return {.scenario = {.workers = 4},
          .examples_per_second = 1,
          .steps_per_second = 2,
          .confidence_interval = {.lower = 3, .upper = 4, .level = 0.9},
          .step_time = {.mean = 5, .p50 = 6, .p95 = 7, .p99 = 8},
          .speedup = 9,
          .scaling_efficiency = 10,
          .utilization = {{.resource = Resource::kUplink, .parameter_server = 1, .fraction = 0.5}},
          .bottleneck = {.resource = Resource::kDownlink, .parameter_server = 2, .fraction = 0.6},
          .exposed_communication_fraction = 11,
          .steady_state = false,
          .warning = "careful",
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
  EXPECT_EQ(wire.utilization(0).parameter_server(), 1);
  EXPECT_EQ(wire.utilization(0).fraction(), 0.5);
  EXPECT_EQ(wire.bottleneck(), v1::Operation::DOWNLINK);
  EXPECT_EQ(wire.bottleneck_parameter_server(), 2);
  EXPECT_EQ(wire.exposed_communication_fraction(), 11);
  EXPECT_FALSE(wire.steady_state());
  EXPECT_EQ(wire.warning(), "careful");
  EXPECT_EQ(wire.replications(), 12);
}

AnswerContext SomeContext() { return {.options = {.seed = 42}, .profile_digest = "digest", .engine_seconds = 1.5}; }

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

TEST(PredictionConvertTest, ARecommendationCarriesEverything) {
  RecommendWorkersAnswer answer{.context = SomeContext()};
  answer.answer = {.workers = 4,
                   .parameter_servers = 2,
                   .prediction = SomePrediction(),
                   .reason = "because",
                   .frontier = {SomePrediction()},
                   .infeasible_reason = "not so"};
  const v1::RecommendWorkersResponse wire = ToWire(answer);
  EXPECT_EQ(wire.workers(), 4);
  EXPECT_EQ(wire.parameter_servers(), 2);
  EXPECT_EQ(wire.prediction().scenario().workers(), 4);
  EXPECT_EQ(wire.reason(), "because");
  EXPECT_EQ(wire.frontier_size(), 1);
  EXPECT_EQ(wire.infeasible_reason(), "not so");
  EXPECT_EQ(wire.options().seed(), 42U);
  EXPECT_EQ(wire.profile_digest(), "digest");
}

TEST(PredictionConvertTest, AnOrderCarriesEverything) {
  OptimizeOrderAnswer answer{.context = SomeContext()};
  answer.answer.orders = {{.method = OrderMethod::kTac,
                           .transfers = {{.name = "t", .rank = 3, .size_bytes = 4}},
                           .makespan_ns = 5,
                           .scheduling_efficiency = 0.6,
                           .straggler_effect = 0.7,
                           .steps_per_second = 8,
                           .examples_per_second = 9,
                           .confidence_interval = {.lower = 1, .upper = 2, .level = 0.95}}};
  answer.answer.chosen = OrderMethod::kTac;
  answer.answer.upper_makespan_ns = 10;
  answer.answer.lower_makespan_ns = 11;
  answer.answer.speedup_bound = 12;
  answer.answer.transfers_without_measured_time = 13;
  answer.answer.graph_steps_per_second = 14;
  answer.answer.random_steps_per_second = 15;
  const v1::OptimizeOrderResponse wire = ToWire(answer);
  ASSERT_EQ(wire.orders_size(), 1);
  const v1::TransferOrderResult& order = wire.orders(0);
  EXPECT_EQ(order.method(), v1::TAC);
  EXPECT_EQ(order.transfers(0).name(), "t");
  EXPECT_EQ(order.transfers(0).rank(), 3);
  EXPECT_EQ(order.transfers(0).size_bytes(), 4);
  EXPECT_EQ(order.makespan_ns(), 5);
  EXPECT_EQ(order.scheduling_efficiency(), 0.6);
  EXPECT_EQ(order.straggler_effect(), 0.7);
  EXPECT_EQ(order.steps_per_second(), 8);
  EXPECT_EQ(order.examples_per_second(), 9);
  EXPECT_EQ(order.speedup_bound(), 12);
  EXPECT_EQ(order.confidence_interval().upper(), 2);
  EXPECT_EQ(wire.chosen(), v1::TAC);
  EXPECT_EQ(wire.upper_makespan_ns(), 10);
  EXPECT_EQ(wire.lower_makespan_ns(), 11);
  EXPECT_EQ(wire.speedup_bound(), 12);
  EXPECT_EQ(wire.transfers_without_measured_time(), 13);
  EXPECT_EQ(wire.graph_steps_per_second(), 14);
  EXPECT_EQ(wire.random_steps_per_second(), 15);
  EXPECT_EQ(wire.profile_digest(), "digest");
}

}  // namespace
}  // namespace stepcast::server
