#include <gtest/gtest.h>

#include <string>

#include "client/cli/texts/answer_texts.h"

#include "tests/client/support/text_proto.h"

namespace stepcast::client::compare_test {
namespace {

TEST(ComparisonTableTest, EachModelHasItsDifferenceAndEachReasonIsSaidOnce) {
  const std::string models = R"pb(
    prediction { examples_per_second: 100 }
    models { model: QUEUEING unavailable_reason: "two servers" }
    models { model: CYNTHIA examples_per_second: 80 relative_difference: -0.2 }
    models { model: CYNTHIA_HALVED examples_per_second: 110 relative_difference: 0.1 }
    models { model: COARSE_TENSORS examples_per_second: 100 })pb";
  auto response = Proto<v1::CompareModelsResponse>(R"pb(
    inputs {
      downlink_phase_seconds: 0.01
      worker_phase_seconds: 0.02
      uplink_phase_seconds: 0.03
      parameter_server_phase_seconds: 0.004
      computation_seconds: 0.05
      transfer_seconds: 0.006
      network_utilization: 0.5
      halved_network_utilization: 0.25
    })pb");
  *response.add_comparisons() = Proto<v1::ModelComparison>("workers: 1" + models);
  *response.add_comparisons() = Proto<v1::ModelComparison>("workers: 2" + models);
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
  const auto response = Proto<v1::CompareModelsResponse>(R"pb(
    comparisons {
      workers: 2
      prediction {
        scenario { workers: 2 }
        examples_per_second: 100
        warnings { message: "the start still shows" }
      }
    })pb");
  EXPECT_NE(ComparisonText(response).find("\nwarning (2 workers): the start still shows\n"),
            std::string::npos)
      << ComparisonText(response);
}

TEST(ComparisonTableTest, ModelsOfCollectivesHaveInputsOfTheirOwn) {
  v1::CompareModelsResponse response;
  v1::ModelComparison& four = *response.add_comparisons();
  four.set_workers(4);
  four.mutable_prediction()->set_examples_per_second(100);
  const auto add = [&](v1::ModelPrediction::Model name, double examples_per_second) {
    v1::ModelPrediction& model = *four.add_models();
    model.set_model(name);
    model.set_examples_per_second(examples_per_second);
    model.set_relative_difference(examples_per_second / 100 - 1);
  };
  add(v1::ModelPrediction::COARSE_TENSORS, 125);
  add(v1::ModelPrediction::POLLUX, 100.2);
  add(v1::ModelPrediction::NO_OVERLAP, 75);
  add(v1::ModelPrediction::PALEO, 80);
  v1::CollectiveInputs& inputs = *response.mutable_collective_inputs();
  inputs.set_computation_seconds(0.25);
  inputs.set_size_bytes(4 << 20);
  inputs.set_pollux_seconds(0.05);
  inputs.set_pollux_seconds_per_worker(0.002);
  inputs.set_pollux_exponent(1.75);
  const std::string text = ComparisonText(response);
  EXPECT_EQ(text,
            "workers  simulated examples/s  coarse tensors  Pollux, fitted    no overlap         "
            "Paleo\n"
            "      4                 100.0    125.0 (+25%)     100.2 (+0%)  75.00 (-25%)  80.00 "
            "(-20%)\n"
            "\n"
            "computation of one worker's step 250.0 ms, collectives of 4.000 MiB\n"
            "Pollux: T_n 50.00 ms and 2.000 ms a worker beyond two, exponent 1.750\n");
}

}  // namespace
}  // namespace stepcast::client::compare_test
