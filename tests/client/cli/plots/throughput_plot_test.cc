#include "client/cli/plots/throughput_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/client/support/random_curve.h"
#include "tests/client/support/text_proto.h"

namespace stepcast::client::throughput_plot_test {
namespace {

using Mark = PlotPoint::Mark;
using testing::ElementsAre;

v1::Prediction Row(int32_t workers, double examples, int32_t servers = 1) {
  v1::Prediction row;
  row.mutable_scenario()->set_workers(workers);
  row.mutable_scenario()->mutable_parameter_servers()->set_servers(servers);
  row.set_examples_per_second(examples);
  row.mutable_confidence_interval()->set_lower(examples - 1);
  row.mutable_confidence_interval()->set_upper(examples + 1);
  row.mutable_confidence_interval()->set_level(0.95);
  row.set_speedup(examples / 100);
  row.set_scaling_efficiency(examples / 100 / workers);
  return row;
}

ThroughputPlot Plot(const std::vector<v1::Prediction>& predictions) {
  return PlotOf("job", ListOf(predictions));
}

TEST(ThroughputPlotTest, MarksTheMostThroughputTimesEfficiency) {
  const ThroughputPlot plot = Plot({Row(4, 210), Row(1, 100), Row(2, 180)});
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
  v1::Prediction row = Row(2, 100);
  *row.mutable_run_interval() = Proto<v1::ConfidenceInterval>("lower: 80 upper: 130 level: 0.95");
  const ThroughputPlot plot = Plot({row});
  EXPECT_EQ(plot.runs, "95% of runs");
  EXPECT_EQ(plot.points[0].run_lower, 80);
  EXPECT_EQ(plot.points[0].run_upper, 130);
  EXPECT_GE(ThroughputAxis(plot, 6).to, 130);
  EXPECT_EQ(Plot({Row(2, 100)}).runs, "");
}

TEST(ThroughputPlotTest, OnePointHasNoKneeAndNoPointsHaveNothing) {
  EXPECT_EQ(Plot({Row(3, 100)}).chosen, "");
  const ThroughputPlot nothing = Plot({});
  EXPECT_TRUE(nothing.points.empty());
  EXPECT_EQ(nothing.one_worker, 0);
  EXPECT_EQ(Plot({Row(1, 0), Row(2, 0)}).chosen, "") << "nothing runs";
}

TEST(ThroughputPlotTest, LeavesOutWhatIsNoThroughput) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ThroughputPlot plot = Plot({Row(1, nan), Row(2, -1), Row(3, 2e12), Row(4, 0), Row(4, 5)});
  ASSERT_EQ(plot.points.size(), 1);
  EXPECT_EQ(plot.points[0].workers, 4);
  EXPECT_EQ(plot.points[0].throughput, 0);
  EXPECT_EQ(plot.points[0].lower, 0);
}

TEST(ThroughputPlotTest, AtTheEdgeOfWhatWasAskedAboutNothingIsRecommended) {
  auto response = Proto<v1::RecommendWorkersResponse>(R"pb(workers: 2 parameter_servers: 1)pb");
  *response.mutable_frontier() = ListOf<v1::Prediction>({Row(1, 100), Row(2, 150)});
  response.set_workers_edge(v1::AT_LARGEST_ASKED);
  EXPECT_EQ(PlotOf("", response).chosen, "best of those asked about");
  response.set_workers_edge(v1::ONLY_CHOICE);
  EXPECT_EQ(PlotOf("", response).chosen, "the only number asked about");
  response.set_workers_edge(v1::ONLY_FEASIBLE);
  EXPECT_EQ(PlotOf("", response).chosen, "recommended");
}

TEST(ThroughputPlotTest, TheEndOfACurveIsNoKnee) {
  const auto chosen = [](double last) {
    return Plot({Row(1, 100), Row(2, 150), Row(3, last)}).chosen;
  };
  EXPECT_EQ(chosen(160), "knee");
  EXPECT_EQ(chosen(290), "no knee before");
}

TEST(ThroughputPlotTest, ARecommendationIsDrawnWithItsServersAndTies) {
  auto response = Proto<v1::RecommendWorkersResponse>(R"pb(
    workers: 2
    parameter_servers: 2
    ties { workers: 3 parameter_servers: 2 }
    ties { workers: 1 parameter_servers: 1 })pb");
  *response.mutable_frontier() = ListOf<v1::Prediction>(
      {Row(1, 100), Row(2, 150), Row(1, 100, 2), Row(2, 190, 2), Row(3, 191, 2)});
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
  auto response = Proto<v1::RecommendWorkersResponse>(R"pb(infeasible_reason: "too slow")pb");
  *response.mutable_frontier() = ListOf<v1::Prediction>({Row(1, 100), Row(2, 150)});
  EXPECT_EQ(PlotOf("", response).chosen, "");
  EXPECT_EQ(PlotOf("", response).points.size(), 2);
  *response.mutable_nearest() = Proto<v1::NearestChoice>("workers: 2 parameter_servers: 1");
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

std::vector<std::string> Texts(const PlotAxis& axis) {
  std::vector<std::string> texts;
  for (const double tick : axis.ticks) texts.push_back(axis.TickText(tick));
  return texts;
}

TEST(PlotAxisTest, FromZeroEndsAtTheFirstTickThatIsEnough) {
  EXPECT_THAT(Texts(AxisFromZero(903.2, 6)), ElementsAre("0", "200", "400", "600", "800", "1000"));
  EXPECT_THAT(Texts(AxisFromZero(1000, 6)), ElementsAre("0", "200", "400", "600", "800", "1000"));
  EXPECT_THAT(Texts(AxisFromZero(1.3, 6)), ElementsAre("0.0", "0.5", "1.0", "1.5"));
  EXPECT_THAT(Texts(AxisFromZero(0, 3)), ElementsAre("0.0", "0.5", "1.0"));
  EXPECT_THAT(Texts(AxisFromZero(kAxisMax, 3)), ElementsAre("0", "500000000000", "1000000000000"));
}

TEST(PlotAxisTest, CountsHaveTicksAtWholeNumbers) {
  EXPECT_THAT(Texts(AxisOfCounts(1, 4, 16)), ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(Texts(AxisOfCounts(1, 16, 5)), ElementsAre("5", "10", "15"));
  EXPECT_THAT(Texts(AxisOfCounts(7, 7, 16)), ElementsAre("6", "7", "8"));
  EXPECT_EQ(AxisOfCounts(7, 7, 16).Fraction(7), 0.5);
}

TEST(PlotAxisTest, TicksAreFewAscendingAndInside) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const int ticks_max = static_cast<int>(random() % 20) + 3;
    const double largest = std::pow(10, random() / 4294967296.0 * 20 - 8);
    const int first = static_cast<int>(random() % 1000) + 1;
    const int last = first + static_cast<int>(random() % 1000);
    const PlotAxis values = AxisFromZero(largest, ticks_max);
    EXPECT_GE(values.to, largest);
    EXPECT_EQ(values.ticks.front(), 0);
    for (const PlotAxis& axis : {values, AxisOfCounts(first, last, ticks_max)}) {
      ASSERT_FALSE(axis.ticks.empty());
      EXPECT_LE(axis.ticks.size(), ticks_max);
      EXPECT_GE(axis.ticks.front(), axis.from);
      EXPECT_LE(axis.ticks.back(), axis.to);
      for (size_t i = 1; i < axis.ticks.size(); ++i) EXPECT_LT(axis.ticks[i - 1], axis.ticks[i]);
      for (const double tick : axis.ticks) {
        EXPECT_NEAR(std::stod(axis.TickText(tick)), tick, (axis.to - axis.from) * 1e-6);
        EXPECT_LE(axis.TickText(tick).size(), 13);
      }
    }
  }
}

}  // namespace
}  // namespace stepcast::client::throughput_plot_test
