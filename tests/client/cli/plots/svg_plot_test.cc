#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "client/cli/plots/throughput_plot.h"

#include "tests/client/support/random_curve.h"

namespace stepcast::client::svg_plot_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// The values of a numeric attribute, in order.
std::vector<double> Values(const std::string& svg, const std::string& attribute) {
  const std::string before = " " + attribute + "=\"";
  std::vector<double> values;
  for (size_t at = svg.find(before); at != std::string::npos; at = svg.find(before, at + 1))
    values.push_back(std::stod(svg.substr(at + before.size(), 16)));
  return values;
}

TEST(SvgPlotTest, DrawsASmallPlot) {
  const std::string svg = SvgPlot({.title = "tiny",
                                   .scenario = "1 server",
                                   .points = {{1, 100, 90, 110},
                                              {2, 180, 160, 200, PlotPoint::Mark::kChosen},
                                              {3, 180, 180, 180, PlotPoint::Mark::kTie}},
                                   .interval = "95% interval",
                                   .chosen = "knee",
                                   .ties = true,
                                   .one_worker = 100});
  EXPECT_EQ("\n" + svg.substr(svg.find("<polygon")), R"(
<polygon class="band" points="120.0,212.8 425.0,76.0 730.0,106.4 730.0,106.4 425.0,136.8 120.0,243.2"/>
<line class="bar" x1="120.0" y1="212.8" x2="120.0" y2="243.2"/>
<line class="bar" x1="425.0" y1="76.0" x2="425.0" y2="136.8"/>
<line class="linear" x1="120.0" y1="228.0" x2="425.0" y2="76.0"/>
<polyline class="curve" points="120.0,228.0 425.0,106.4 730.0,106.4"/>
<circle class="point" cx="120.0" cy="228.0" r="3"><title>1 worker: 100.0 examples/s, 90.00 .. 110.0</title></circle>
<circle class="chosen" cx="425.0" cy="106.4" r="5"><title>2 workers: 180.0 examples/s, 160.0 .. 200.0</title></circle>
<circle class="tie" cx="730.0" cy="106.4" r="5"><title>3 workers: 180.0 examples/s</title></circle>
<line class="curve" x1="120.0" y1="438.0" x2="144.0" y2="438.0"/>
<text class="legend" x="148.0" y="442.0" text-anchor="start">prediction</text>
<rect class="band" x="230.0" y="432.0" width="24.0" height="12"/>
<text class="legend" x="258.0" y="442.0" text-anchor="start">95% interval</text>
<line class="linear" x1="354.0" y1="438.0" x2="378.0" y2="438.0"/>
<text class="legend" x="382.0" y="442.0" text-anchor="start">linear scaling</text>
<circle class="chosen" cx="132.0" cy="460.0" r="5"/>
<text class="legend" x="148.0" y="464.0" text-anchor="start">knee: 2 workers</text>
<circle class="tie" cx="277.0" cy="460.0" r="5"/>
<text class="legend" x="293.0" y="464.0" text-anchor="start">as good</text>
</svg>
)");
}

TEST(SvgPlotTest, SingleRunsAreAWiderAndLighterBand) {
  const std::string svg = SvgPlot({.title = "runs",
                                   .points = {{1, 100, 90, 110, PlotPoint::Mark::kNone, 50, 150},
                                              {2, 180, 160, 200, PlotPoint::Mark::kNone, 120, 250}},
                                   .interval = "95% interval",
                                   .runs = "95% of runs"});
  EXPECT_LT(svg.find("<polygon class=\"runs\""), svg.find("<polygon class=\"band\""));
  EXPECT_THAT(
      svg,
      HasSubstr("1 worker: 100.0 examples/s, 90.00 .. 110.0, single runs 50.00 .. 150.0</title>"));
  EXPECT_THAT(svg, HasSubstr(">95% of runs</text>"));
}

TEST(SvgPlotTest, EscapesTextsOfOthers) {
  const std::string svg =
      SvgPlot({.title = "</title><script>\"a\" & 'b'\x01\xff", .scenario = "<x>"});
  EXPECT_THAT(svg, HasSubstr("<title>&lt;/title&gt;&lt;script&gt;&quot;a&quot; &amp; "
                             "&apos;b&apos;\\x01\ufffd</title>"));
  EXPECT_THAT(svg, HasSubstr(">&lt;x&gt;</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
}

TEST(SvgPlotTest, OnePointHasNoLinesAndNoneIsAnEmptyFrame) {
  const std::string one =
      SvgPlot({.title = "one", .points = {{3, 100, 90, 110}}, .interval = "95% interval"});
  EXPECT_THAT(one, Not(testing::AnyOf(HasSubstr("<polygon"), HasSubstr("<polyline"),
                                      HasSubstr("class=\"linear\""))));
  EXPECT_THAT(one, HasSubstr("<line class=\"bar\""));
  EXPECT_THAT(SvgPlot({.title = "none"}), Not(HasSubstr("<circle")));
}

TEST(SvgPlotTest, EverythingIsInsideAndPointsAreInOrder) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const ThroughputPlot plot = PlotOf("random", RandomCurve(seed));
    const std::string svg = SvgPlot(plot);
    for (const char* const attribute : {"x", "x1", "x2", "cx"}) {
      for (const double x : Values(svg, attribute))
        EXPECT_TRUE(x >= 0 && x <= 760) << attribute << x;
    }
    for (const char* const attribute : {"y", "y1", "y2", "cy"}) {
      for (const double y : Values(svg, attribute))
        EXPECT_TRUE(y >= 0 && y <= 480) << attribute << y;
    }
    const std::vector<double> across = Values(svg, "cx");
    const std::vector<double> down = Values(svg, "cy");
    ASSERT_GE(across.size(), plot.points.size());
    for (size_t i = 0; i < plot.points.size(); ++i) {
      EXPECT_TRUE(across[i] >= 120 && across[i] <= 730 && down[i] >= 76 && down[i] <= 380);
      if (i == 0) continue;
      EXPECT_LT(across[i - 1], across[i]);
      if (plot.points[i - 1].throughput <= plot.points[i].throughput) {
        EXPECT_GE(down[i - 1], down[i]);
      }
    }
  }
}

TEST(SvgPlotTest, TheLegendFits) {
  const std::string svg =
      SvgPlot({.title = "wide",
               .points = {{1, 100, 90, 110}, {1024, 180, 160, 200, PlotPoint::Mark::kChosen}},
               .interval = "99.9% interval",
               .chosen = "nearest to the constraints",
               .ties = true,
               .one_worker = 0.1});
  const std::regex pattern("class=\"legend\" x=\"([0-9.]+)\"[^>]*>([^<]*)<");
  for (auto at = std::sregex_iterator(svg.begin(), svg.end(), pattern);
       at != std::sregex_iterator(); ++at) {
    EXPECT_LE(std::stod((*at)[1]) + 6.5 * static_cast<double>((*at)[2].length()), 760) << (*at)[2];
  }
}

}  // namespace
}  // namespace stepcast::client::svg_plot_test
