#include "server/convert/order_convert.h"

#include <gtest/gtest.h>

namespace stepcast::server::order_convert_test {
namespace {

TEST(OrderConvertTest, OptimizeOrderRefusesMethodsItDoesNotKnow) {
  v1::OptimizeOrderRequest wire;
  wire.add_methods(v1::TAC);
  wire.add_methods(v1::ORDER_METHOD_UNSPECIFIED);
  wire.add_methods(static_cast<v1::OrderMethod>(70));
  wire.mutable_time_budget()->set_seconds(2);
  wire.set_inference(true);
  const OptimizeOrderCall call = FromWire(wire);
  EXPECT_EQ(call.draft.methods, std::vector<OrderMethod>{OrderMethod::kTac});
  ASSERT_EQ(call.faults.size(), 2U);
  EXPECT_EQ(call.faults[0].field, "methods[1]");
  EXPECT_EQ(call.faults[1].field, "methods[2]");
  EXPECT_EQ(call.time_budget_seconds, 2);
  EXPECT_TRUE(call.draft.inference);
}

TEST(OrderConvertTest, AnOrderCarriesEverything) {
  OptimizeOrderAnswer answer{
      .context = {.options = {.seed = 42}, .profile_digest = "digest", .engine_seconds = 1.5}};
  answer.answer.orders = {
      {.method = OrderMethod::kTac,
       .transfers =
           {{.name = "t", .rank = 3, .size_bytes = 4, .parameter_server = 20, .server_rank = 21}},
       .makespan_ns = 5,
       .gap = 0.25,
       .is_best = true,
       .scheduling_efficiency = 0.6,
       .straggler_effect = 0.7,
       .steps_per_second = 8,
       .examples_per_second = 9,
       .confidence_interval = {.lower = 1, .upper = 2, .level = 0.95},
       .speedups = {
           {.over = TransferOrder::kRandom,
            .speedup = 1.5,
            .confidence_interval = Interval{.lower = 1.25, .upper = 1.75}},
           {.over = TransferOrder::kGraph, .speedup = 1, .confidence_interval = std::nullopt}}}};
  answer.answer.chosen = OrderMethod::kTac;
  answer.answer.upper_makespan_ns = 10;
  answer.answer.lower_makespan_ns = 11;
  answer.answer.speedup_bound = 12;
  answer.answer.order_lower_bound_ns = 16;
  answer.answer.operations = 17;
  answer.answer.unmeasured_transfers = {"u", "v"};
  answer.answer.baselines = {{.order = TransferOrder::kGraph,
                              .steps_per_second = 14,
                              .examples_per_second = 140,
                              .confidence_interval = {.upper = 141}},
                             {.order = TransferOrder::kRandom, .steps_per_second = 15}};
  answer.answer.warnings = {{.reason = Warning::Reason::kFiniteHorizon, .message = "TAC: short"}};
  const v1::OptimizeOrderResponse wire = ToWire(answer);
  ASSERT_EQ(wire.orders_size(), 1);
  ASSERT_EQ(wire.warnings_size(), 1);
  EXPECT_EQ(wire.warnings(0).reason(), v1::Warning::FINITE_HORIZON);
  EXPECT_EQ(wire.warnings(0).message(), "TAC: short");
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
  EXPECT_EQ(order.transfers(0).parameter_server(), 20);
  EXPECT_EQ(order.transfers(0).server_rank(), 21);
  EXPECT_EQ(order.gap(), 0.25);
  EXPECT_TRUE(order.best());
  ASSERT_EQ(order.speedups_size(), 2);
  EXPECT_EQ(order.speedups(0).over(), v1::ParameterServers::RANDOM);
  EXPECT_EQ(order.speedups(0).speedup(), 1.5);
  EXPECT_EQ(order.speedups(0).confidence_interval().lower(), 1.25);
  EXPECT_FALSE(order.speedups(1).has_confidence_interval());
  EXPECT_EQ(wire.order_lower_bound_ns(), 16);
  EXPECT_EQ(wire.operations(), 17);
  ASSERT_EQ(wire.baselines_size(), 2);
  EXPECT_EQ(wire.baselines(0).transfer_order(), v1::ParameterServers::GRAPH);
  EXPECT_EQ(wire.baselines(0).examples_per_second(), 140);
  EXPECT_EQ(wire.baselines(0).confidence_interval().upper(), 141);
  EXPECT_EQ(wire.transfers_without_measured_time(), 2);
  EXPECT_EQ(wire.unmeasured_transfers(1), "v");
  EXPECT_EQ(wire.graph_steps_per_second(), 14);
  EXPECT_EQ(wire.random_steps_per_second(), 15);
  EXPECT_EQ(wire.profile_digest(), "digest");
}

}  // namespace
}  // namespace stepcast::server::order_convert_test
