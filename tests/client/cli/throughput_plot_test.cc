#include "client/cli/throughput_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/client/support/random_curve.h"

namespace stepcast::client::throughput_plot_test {
namespace {

using Mark = PlotPoint::Mark;
using testing::ElementsAre;

Prediction Row(int32_t workers, double examples, int32_t servers = 1) {
  return {.scenario = {.workers = workers, .parameter_servers = servers},
          .examples_per_second = examples,
          .confidence_interval = {.lower = examples - 1, .upper = examples + 1, .level = 0.95},
          .speedup = examples / 100,
          .scaling_efficiency = examples / 100 / workers};
}

TEST(ThroughputPlotTest, MarksTheMostThroughputTimesEfficiency) {
  const ThroughputPlot plot = PlotOf("job", {Row(4, 210), Row(1, 100), Row(2, 180)});
  EXPECT_EQ(plot.title, "job");
  EXPECT_EQ(plot.scenario, "1 server");
  EXPECT_EQ(plot.chosen, "knee");
  EXPECT_EQ(plot.interval, "95% interval");
  EXPECT_DOUBLE_EQ(plot.one_worker, 100);
  EXPECT_THAT(plot.points, ElementsAre(PlotPoint{1, 100, 99, 101, Mark::kNone},
                                       PlotPoint{2, 180, 179, 181, Mark::kChosen},
                                       PlotPoint{4, 210, 209, 211, Mark::kNone}));
}

TEST(ThroughputPlotTest, SingleRunsAreDrawnWhereTheyAreKnown) {
  Prediction row = Row(2, 100);
  row.run_interval = {.lower = 80, .upper = 130, .level = 0.95};
  const ThroughputPlot plot = PlotOf("", {row});
  EXPECT_EQ(plot.runs, "95% of runs");
  EXPECT_EQ(plot.points[0].run_lower, 80);
  EXPECT_EQ(plot.points[0].run_upper, 130);
  EXPECT_GE(ThroughputAxis(plot, 6).to, 130);
  EXPECT_EQ(PlotOf("", {Row(2, 100)}).runs, "");
}

TEST(ThroughputPlotTest, NamesTheScenario) {
  Prediction row = Row(1, 100, 2);
  row.scenario.bandwidth_bytes_per_second = 119.5e6;
  row.scenario.synchronization = Synchronization::kSynchronous;
  row.scenario.transfer_order = TransferOrder::kTac;
  EXPECT_EQ(PlotOf("", {row}).scenario, "2 servers, 119.5 MB/s links, synchronous, TAC order");
}

TEST(ThroughputPlotTest, OnePointHasNoKneeAndNoPointsHaveNothing) {
  EXPECT_EQ(PlotOf("", {Row(3, 100)}).chosen, "");
  const ThroughputPlot nothing = PlotOf("", std::vector<Prediction>{});
  EXPECT_TRUE(nothing.points.empty());
  EXPECT_EQ(nothing.one_worker, 0);
  EXPECT_EQ(PlotOf("", {Row(1, 0), Row(2, 0)}).chosen, "") << "nothing runs";
}

TEST(ThroughputPlotTest, LeavesOutWhatIsNoThroughput) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ThroughputPlot plot =
      PlotOf("", {Row(1, nan), Row(2, -1), Row(3, 2e12), Row(4, 0), Row(4, 5)});
  ASSERT_EQ(plot.points.size(), 1);
  EXPECT_EQ(plot.points[0].workers, 4);
  EXPECT_EQ(plot.points[0].throughput, 0);
  EXPECT_EQ(plot.points[0].lower, 0);
}

TEST(ThroughputPlotTest, ARecommendationIsDrawnWithItsServersAndTies) {
  RecommendWorkersResponse response{
      .workers = 2,
      .parameter_servers = 2,
      .frontier = {Row(1, 100), Row(2, 150), Row(1, 100, 2), Row(2, 190, 2), Row(3, 191, 2)}};
  response.ties = {{.workers = 3, .parameter_servers = 2}, {.workers = 1, .parameter_servers = 1}};
  const ThroughputPlot plot = PlotOf("", response);
  ASSERT_EQ(plot.points.size(), 3);
  EXPECT_EQ(plot.scenario, "2 servers");
  EXPECT_EQ(plot.chosen, "recommended");
  EXPECT_TRUE(plot.ties);
  EXPECT_EQ(plot.points[0].mark, Mark::kNone) << "the tie has another number of servers";
  EXPECT_EQ(plot.points[1].mark, Mark::kChosen);
  EXPECT_EQ(plot.points[2].mark, Mark::kTie);
}

TEST(ThroughputPlotTest, WithoutARecommendationTheNearestIsMarked) {
  RecommendWorkersResponse response{.frontier = {Row(1, 100), Row(2, 150)},
                                    .infeasible_reason = "too slow"};
  EXPECT_EQ(PlotOf("", response).chosen, "");
  EXPECT_EQ(PlotOf("", response).points.size(), 2);
  response.nearest = NearestChoice{.workers = 2, .parameter_servers = 1};
  EXPECT_EQ(PlotOf("", response).chosen, "nearest to the constraints");
  EXPECT_EQ(PlotOf("", response).points[1].mark, Mark::kChosen);
}

TEST(ThroughputPlotTest, EverythingIsBetweenTheAxes) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    const ThroughputPlot plot = PlotOf("", RandomCurve(seed));
    const PlotAxis workers = WorkersAxis(plot, 8);
    const PlotAxis throughput = ThroughputAxis(plot, 6);
    const auto is_inside = [](double fraction) { return fraction >= 0 && fraction <= 1 + 1e-9; };
    for (size_t i = 0; i < plot.points.size(); ++i) {
      const PlotPoint& point = plot.points[i];
      if (i > 0) {
        EXPECT_LT(plot.points[i - 1].workers, point.workers);
      }
      EXPECT_TRUE(is_inside(workers.Fraction(point.workers)));
      EXPECT_LE(point.lower, point.throughput);
      EXPECT_LE(point.throughput, point.upper);
      EXPECT_TRUE(is_inside(throughput.Fraction(point.lower)) &&
                  is_inside(throughput.Fraction(point.upper)));
    }
    const std::optional<PlotLine> line = LinearScaling(plot, workers, throughput);
    if (!line) continue;
    EXPECT_TRUE(is_inside(workers.Fraction(line->from_workers)) &&
                is_inside(workers.Fraction(line->to_workers)));
    EXPECT_TRUE(is_inside(throughput.Fraction(line->from_throughput)) &&
                is_inside(throughput.Fraction(line->to_throughput)));
  }
}

}  // namespace
}  // namespace stepcast::client::throughput_plot_test
