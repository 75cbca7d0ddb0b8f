#include "server/metrics/simulation_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace stepcast::server::simulation_metrics_test {
namespace {

using ::testing::HasSubstr;

TEST(SimulationMetricsTest, AnswersAndFailuresAreCountedApart) {
  prometheus::Registry registry;
  SimulationMetrics metrics(registry);
  metrics.OnSimulation("OptimizeOrder", absl::StatusCode::kOk, 0.5, 1000);
  metrics.OnSimulation("OptimizeOrder", absl::StatusCode::kCancelled, 0.25, 0);
  const std::string text = prometheus::TextSerializer().Serialize(registry.Collect());
  EXPECT_THAT(text,
              HasSubstr("stepcast_predictions_total{code=\"OK\",method=\"OptimizeOrder\"} 1\n"));
  EXPECT_THAT(
      text,
      HasSubstr("stepcast_predictions_total{code=\"Canceled\",method=\"OptimizeOrder\"} 1\n"));
  EXPECT_THAT(
      text, HasSubstr("stepcast_predictions_total{code=\"OK\",method=\"PredictThroughput\"} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("stepcast_predictions_total{code=\"OK\",method=\"GenerateTrace\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("stepcast_simulated_operations_total 1000\n"));
  EXPECT_THAT(text, HasSubstr("stepcast_simulation_seconds_sum{method=\"OptimizeOrder\"} 0.75\n"));
}

}  // namespace
}  // namespace stepcast::server::simulation_metrics_test
