#include <gtest/gtest.h>

#include <string>

#include "client/cli/texts/answer_texts.h"

#include "tests/client/support/text_proto.h"

namespace stepcast::client::order_test {
namespace {

v1::OptimizeOrderResponse TwoOrders() {
  return Proto<v1::OptimizeOrderResponse>(R"pb(
    orders {
      method: TAC
      transfers { name: "recv/a" size_bytes: 2048 }
      transfers { name: "recv/b" rank: 1 size_bytes: 12 }
      makespan_ns: 64930000
      scheduling_efficiency: 1
      straggler_effect: 0.05
      steps_per_second: 15.39
      examples_per_second: 492.6
      best: true
      speedups {
        over: GRAPH
        speedup: 1.1
        confidence_interval { lower: 1 upper: 1.2 }
      }
    }
    orders { method: GRAPH makespan_ns: 70000000 scheduling_efficiency: 0.459 gap: 0.125 }
    chosen: TAC
    upper_makespan_ns: 92580000
    lower_makespan_ns: 32350000
    speedup_bound: 1.862
    baselines {
      transfer_order: GRAPH
      examples_per_second: 448
      confidence_interval { lower: 440 upper: 456 }
    }
    order_lower_bound_ns: 64930000)pb");
}

constexpr char kMethods[] =
    "    method  makespan    gap  efficiency  straggler  steps/s  examples/s\n"
    "->  TAC     64.93 ms   best      100.0%       5.0%    15.39       492.6\n"
    "    GRAPH   70.00 ms  12.5%       45.9%       0.0%        0           0\n"
    "A step takes from 32.35 ms (the busiest resource) to 92.58 ms (one thing at a time): order "
    "can gain 186.2% at most.\n"
    "No order of the downloads takes less than 64.93 ms; gap: how far above that an order is.\n";
constexpr char kAgainst[] =
    "\n"
    "against      examples/s        interval  speed-up        interval\n"
    "graph order       448.0  440.0 to 456.0     1.100  1.000 to 1.200\n";

TEST(OrderTableTest, ShowsMethodsBoundsAndTheChosenOrder) {
  EXPECT_EQ(OrderText(TwoOrders(), 10), std::string(kMethods) + kAgainst +
                                            "\n"
                                            "TAC, first to last:\n"
                                            "rank       size  transfer\n"
                                            "   0  2.000 KiB  recv/a\n"
                                            "   1       12 B  recv/b\n");
}

TEST(OrderTableTest, AnOrderThatIsSlowerIsAdvisedAgainstAsFarAsThatIsSure) {
  v1::OptimizeOrderResponse response = TwoOrders();
  v1::OrderSpeedup& over = *response.mutable_orders(0)->mutable_speedups(0);
  over.set_speedup(0.75);
  over.mutable_confidence_interval()->set_lower(0.7);
  const std::string line =
      "Slower in the long run: TAC is chosen by the makespan of one step, and makes 25.0% fewer "
      "examples/s than graph order, so keep that.\n";
  over.mutable_confidence_interval()->set_upper(0.99);
  EXPECT_NE(OrderText(response, 10).find(line), std::string::npos);
  over.mutable_confidence_interval()->set_upper(1);
  const std::string doubt =
      "Perhaps slower in the long run: TAC is chosen by the makespan of one step, and makes 25.0% "
      "fewer examples/s than graph order (0.7000 to 1.000 times as many).\n";
  EXPECT_NE(OrderText(response, 10).find(doubt), std::string::npos) << OrderText(response, 10);
  over.set_speedup(0.99);
  EXPECT_EQ(OrderText(response, 10).find("in the long run"), std::string::npos);
}

TEST(OrderTableTest, ALossThatIsSureIsToldBeforeALargerOne) {
  v1::OptimizeOrderResponse response = TwoOrders();
  v1::OrderSpeedup& perhaps = *response.mutable_orders(0)->mutable_speedups(0);
  perhaps.set_speedup(0.8);
  perhaps.mutable_confidence_interval()->set_lower(0.6);
  perhaps.mutable_confidence_interval()->set_upper(1.1);
  v1::OrderSpeedup& surely = *response.mutable_orders(0)->add_speedups();
  surely.set_over(v1::ParameterServers::RECORDED);
  surely.set_speedup(0.9);
  surely.mutable_confidence_interval()->set_lower(0.85);
  surely.mutable_confidence_interval()->set_upper(0.95);
  EXPECT_NE(OrderText(response, 0)
                .find("\nSlower in the long run: TAC is chosen by the makespan of "
                      "one step, and makes 10.0% fewer examples/s than recorded "
                      "order, so keep that.\n"),
            std::string::npos)
      << OrderText(response, 0);
}

TEST(OrderTableTest, CountsTheTransfersItDoesNotShow) {
  const std::string text = OrderText(TwoOrders(), 1);
  EXPECT_NE(text.find("recv/a\nand 1 more"), std::string::npos) << text;
  EXPECT_EQ(text.find("recv/b"), std::string::npos);
  EXPECT_EQ(OrderText(TwoOrders(), 0), std::string(kMethods) + kAgainst);
}

TEST(OrderTableTest, WhatWeakensTheThroughputsStandsBelowThem) {
  v1::OptimizeOrderResponse response = TwoOrders();
  response.add_warnings()->set_message("TAC, GRAPH: the start still shows");
  EXPECT_EQ(OrderText(response, 0),
            std::string(kMethods) + "warning: TAC, GRAPH: the start still shows\n" + kAgainst);
}

TEST(OrderTableTest, TheSpreadOfOrdersStandsBesideTheChosenOne) {
  v1::OptimizeOrderResponse response = TwoOrders();
  v1::OrderBaseline& baseline = *response.mutable_baselines(0);
  baseline.set_orders(100);
  baseline.set_unique_orders(97);
  baseline.set_scheduling_efficiency(0.5);
  baseline.set_least_scheduling_efficiency(0.25);
  baseline.set_straggler_effect(0.125);
  baseline.mutable_synchronous_step_time()->mutable_p50()->set_nanos(2'000'000);
  const std::string text = OrderText(response, 0);
  EXPECT_NE(text.find("workers that wait  orders  different  efficiency"), std::string::npos);
  EXPECT_NE(text.find("graph order           100         97       50.0%     25.0%      12.5%"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("TAC                     1          1      100.0%    100.0%"),
            std::string::npos)
      << text;
}

TEST(OrderTableTest, WarnsOfTransfersNobodyMeasured) {
  v1::OptimizeOrderResponse response = TwoOrders();
  response.set_transfers_without_measured_time(3);
  for (const char* name : {"a", "b", "c"}) response.add_unmeasured_transfers(name);
  const std::string text = OrderText(response, 0);
  EXPECT_NE(
      text.find(
          "warning: no recorded step shows 3 of the transfers to have taken any time: a, b, c\n"),
      std::string::npos)
      << text;
}

TEST(OrderTableTest, NamesTheServersWhereThereAreSeveral) {
  v1::OptimizeOrderResponse response = TwoOrders();
  response.mutable_orders(0)->mutable_transfers(1)->set_parameter_server(1);
  const std::string text = OrderText(response, 10);
  EXPECT_NE(text.find("rank  server  rank there       size  transfer\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("   1       1           0       12 B  recv/b\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace stepcast::client::order_test
