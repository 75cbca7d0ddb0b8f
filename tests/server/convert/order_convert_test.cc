#include "server/convert/order_convert.h"

#include <gtest/gtest.h>

namespace stepcast::server {
namespace {

TEST(OrderConvertTest, OptimizeOrderRefusesMethodsItDoesNotKnow) {
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

TEST(OrderConvertTest, AnOrderCarriesEverything) {
  OptimizeOrderAnswer answer{.context = {.options = {.seed = 42}, .profile_digest = "digest", .engine_seconds = 1.5}};
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
