#include "client/cli/order_table.h"

#include <gtest/gtest.h>

namespace stepcast::client {
namespace {

OptimizeOrderResponse TwoOrders() {
  return {.orders = {{.method = OrderMethod::kTac,
                      .transfers = {{.name = "recv/a", .rank = 0, .size_bytes = 2048}, {.name = "recv/b", .rank = 1, .size_bytes = 12}},
                      .makespan_ns = 64'930'000,
                      .scheduling_efficiency = 1,
                      .straggler_effect = 0.05,
                      .steps_per_second = 15.39,
                      .examples_per_second = 492.6},
                     {.method = OrderMethod::kGraph, .makespan_ns = 70'000'000, .scheduling_efficiency = 0.459}},
          .chosen = OrderMethod::kTac,
          .upper_makespan_ns = 92'580'000,
          .lower_makespan_ns = 32'350'000,
          .speedup_bound = 1.862,
          .graph_steps_per_second = 14,
          .random_steps_per_second = 13.81};
}

constexpr char kMethods[] =
    "    method  makespan  efficiency  straggler  steps/s  examples/s\n"
    "->  TAC     64.93 ms      100.0%       5.0%    15.39       492.6\n"
    "    GRAPH   70.00 ms       45.9%       0.0%        0           0\n"
    "A step takes from 32.35 ms (the busiest resource) to 92.58 ms (one thing at a time): order can gain 186.2% at most.\n"
    "In graph order: 14.00 steps/s; in random order: 13.81 steps/s.\n";

TEST(OrderTableTest, ShowsMethodsBoundsAndTheChosenOrder) {
  EXPECT_EQ(OrderText(TwoOrders(), 10), std::string(kMethods) +
                                            "\n"
                                            "TAC, first to last:\n"
                                            "rank       size  transfer\n"
                                            "   0  2.000 KiB  recv/a\n"
                                            "   1       12 B  recv/b\n");
}

TEST(OrderTableTest, CountsTheTransfersItDoesNotShow) {
  const std::string text = OrderText(TwoOrders(), 1);
  EXPECT_NE(text.find("recv/a\nand 1 more"), std::string::npos) << text;
  EXPECT_EQ(text.find("recv/b"), std::string::npos);
  EXPECT_EQ(OrderText(TwoOrders(), 0), kMethods);
}

TEST(OrderTableTest, WarnsOfTransfersNobodyMeasured) {
  OptimizeOrderResponse response = TwoOrders();
  response.transfers_without_measured_time = 3;
  EXPECT_NE(OrderText(response, 0).find("warning: no recorded step shows 3 of the transfers"), std::string::npos);
}

}  // namespace
}  // namespace stepcast::client
