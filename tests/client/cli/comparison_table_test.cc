#include "client/cli/comparison_table.h"

#include <gtest/gtest.h>

namespace stepcast::client::comparison_table_test {
namespace {

TEST(ComparisonTableTest, EachModelHasItsDifferenceAndEachReasonIsSaidOnce) {
  const std::vector<ModelPrediction> models = {
      {.model = ComparedModel::kQueueing, .unavailable_reason = "two servers"},
      {.model = ComparedModel::kCynthia, .examples_per_second = 80, .relative_difference = -0.2},
      {.model = ComparedModel::kCynthiaHalved,
       .examples_per_second = 110,
       .relative_difference = 0.1},
      {.model = ComparedModel::kCoarseTensors, .examples_per_second = 100}};
  const CompareModelsResponse response{
      .comparisons = {{.workers = 1, .prediction = {.examples_per_second = 100}, .models = models},
                      {.workers = 2, .prediction = {.examples_per_second = 100}, .models = models}},
      .inputs = {.downlink_phase_seconds = 0.01,
                 .worker_phase_seconds = 0.02,
                 .uplink_phase_seconds = 0.03,
                 .parameter_server_phase_seconds = 0.004,
                 .computation_seconds = 0.05,
                 .transfer_seconds = 0.006,
                 .network_utilization = 0.5,
                 .halved_network_utilization = 0.25}};
  EXPECT_EQ(ComparisonText(response),
            "workers  simulated examples/s  queueing (Lin)       Cynthia  Cynthia, half T_C  "
            "coarse tensors\n"
            "      1                 100.0               -  80.00 (-20%)       110.0 (+10%)     "
            "100.0 (+0%)\n"
            "      2                 100.0               -  80.00 (-20%)       110.0 (+10%)     "
            "100.0 (+0%)\n"
            "queueing (Lin): two servers\n"
            "\n"
            "phases of one worker's step: downlink 10.00 ms, worker 20.00 ms, uplink 30.00 ms, "
            "server 4.000 ms\n"
            "Cynthia: T_P 50.00 ms, T_C 6.000 ms, U_1 50.0%, with half of T_C 25.0%\n");
}

TEST(ComparisonTableTest, WhatWeakensTheSimulationStandsBelow) {
  const CompareModelsResponse response{
      .comparisons = {{.workers = 2,
                       .prediction = {.scenario = {.workers = 2},
                                      .examples_per_second = 100,
                                      .warning = "the start still shows"}}}};
  EXPECT_NE(ComparisonText(response).find("\nwarning (2 workers): the start still shows\n"),
            std::string::npos)
      << ComparisonText(response);
}

}  // namespace
}  // namespace stepcast::client::comparison_table_test
