#include "client/cli/prediction_table.h"

#include <gtest/gtest.h>

namespace stepcast::client::prediction_table_test {
namespace {

Prediction Row(int32_t workers, double examples, Resource bottleneck,
               const std::string& warning = "") {
  return {
      .scenario = {.workers = workers, .parameter_servers = 1},
      .examples_per_second = examples,
      .confidence_interval = {.lower = examples * 0.98, .upper = examples * 1.02, .level = 0.95},
      .step_time = {.p50 = std::chrono::microseconds(64'930)},
      .speedup = examples / 100,
      .scaling_efficiency = examples / 100 / workers,
      .bottleneck = bottleneck,
      .bottleneck_parameter_server = 1,
      .warning = warning};
}

TEST(PredictionTableTest, HasARowAPrediction) {
  Prediction certain = Row(1, 100, Resource::kWorker);
  certain.confidence_interval = {.lower = 100, .upper = 100, .level = 0.95};
  EXPECT_EQ(
      PredictionTable(
          {certain, Row(2, 187.5, Resource::kDownlink), Row(16, 1234.5, Resource::kUplink)}),
      "workers  examples/s    95% interval  speed-up  efficiency  step p50  bottleneck\n"
      "      1       100.0               -     1.000      100.0%  64.93 ms  computation of the "
      "workers\n"
      "      2       187.5  183.8 .. 191.2     1.875       93.8%  64.93 ms  downlink of server 1\n"
      "     16        1234    1210 .. 1259     12.35       77.2%  64.93 ms  uplink of server 1\n");
}

TEST(PredictionTableTest, ShowsWhereSingleRunsFallAndBothRegimesWhereThereAreTwo) {
  Prediction one = Row(1, 100, Resource::kWorker);
  one.run_interval = {.lower = 90, .upper = 110, .level = 0.95};
  Prediction two = Row(2, 150, Resource::kDownlink);
  two.run_interval = {.lower = 99.5, .upper = 201.5, .level = 0.95};
  two.regimes = {{.examples_per_second = 200, .replications = 10},
                 {.examples_per_second = 100, .replications = 10, .other_start_replications = 3}};
  EXPECT_EQ(PredictionTable({one, two}),
            "workers  examples/s    95% interval     95% of runs  speed-up  efficiency  step p50  "
            "bottleneck                  two regimes, by runs\n"
            "      1       100.0  98.00 .. 102.0  90.00 .. 110.0     1.000      100.0%  64.93 ms  "
            "computation of the workers\n"
            "      2       150.0  147.0 .. 153.0  99.50 .. 201.5     1.500       75.0%  64.93 ms  "
            "downlink of server 1        200.0 in 10 of 23, 100.0 in "
            "13 of 23\n");
}

TEST(PredictionTableTest, SaysEachWarningOnceWithItsRows) {
  const std::string text = PredictionTable(
      {Row(1, 1, Resource::kWorker, "drifts"), Row(2, 1, Resource::kWorker, "drifts"),
       Row(3, 1, Resource::kWorker), Row(4, 1, Resource::kWorker, "drifts")});
  EXPECT_EQ(text.substr(text.find("warning")), "warning (1-2, 4 workers): drifts\n");
}

TEST(PredictionTableTest, WarningsThatDifferInNumbersAreOne) {
  const std::string text = PredictionTable({Row(1, 1, Resource::kWorker, "nothing is random"),
                                            Row(2, 1, Resource::kWorker, "drifts by 3.5 %"),
                                            Row(3, 1, Resource::kWorker, "drifts by 12 %")});
  EXPECT_EQ(text.substr(text.find("warning")),
            "warning (1 worker): nothing is random\n"
            "warning (2-3 workers; the numbers are those for 2): drifts by 3.5 %\n");
}

TEST(PredictionTableTest, ANumberOfWorkersThatComesAgainIsSaidOnce) {
  EXPECT_EQ(
      WarningsText({Row(2, 1, Resource::kWorker, "drifts"), Row(4, 1, Resource::kWorker, "drifts"),
                    Row(2, 1, Resource::kWorker, "drifts")}),
      "warning (2, 4 workers): drifts\n");
}

TEST(BottleneckTextTest, NamesEveryResource) {
  EXPECT_EQ(BottleneckText(Resource::kDownlink, 0), "downlink of server 0");
  EXPECT_EQ(BottleneckText(Resource::kUplink, 3), "uplink of server 3");
  EXPECT_EQ(BottleneckText(Resource::kParameterServer, 2), "computation of server 2");
  EXPECT_EQ(BottleneckText(Resource::kWorker, 0), "computation of the workers");
  EXPECT_EQ(BottleneckText(static_cast<Resource>(99), 0), "unknown");
}

}  // namespace
}  // namespace stepcast::client::prediction_table_test
