#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/cli/plots/throughput_plot.h"
#include "client/cli/texts/characters.h"

#include "tests/client/support/random_curve.h"

namespace stepcast::client::terminal_plot_test {
namespace {

using testing::HasSubstr;

std::vector<std::u32string> Lines(const std::string& text) {
  std::vector<std::u32string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(Characters(text.substr(at, end - at)));
    at = end + 1;
  }
  return lines;
}

// A knee at 2, a tie at 4.
ThroughputPlot SmallPlot() {
  return {.title = "tiny",
          .scenario = "1 server",
          .points = {{1, 100, 100, 100},
                     {2, 180, 160, 200, PlotPoint::Mark::kChosen},
                     {4, 240, 200, 280, PlotPoint::Mark::kTie}},
          .interval = "95% interval",
          .chosen = "knee",
          .ties = true,
          .one_worker = 100};
}

TEST(TerminalPlotTest, DrawsWithAscii) {
  EXPECT_EQ("\n" + TerminalPlot(SmallPlot(), {.columns = 40}), R"(
tiny
1 server

examples/s
       300 +                 ..
           |               ..          |
           |             ...           |
           |            ..             =
           |          ..               |
       200 +        .|                 |
           |      ...#
           |     ..  |
           |   ..
           | ..
       100 +o.
           |
           |
           |
           |
         0 +
           ++--------+--------+--------+
            1        2        3        4
                      workers

o prediction   # knee: 2 workers
= as good   | 95% interval
. linear scaling
)");
}

TEST(TerminalPlotTest, DrawsWithBraille) {
  EXPECT_EQ("\n" + TerminalPlot(SmallPlot(), {.columns = 40, .utf8 = true}), R"(
tiny
1 server

examples/s
       300 ┤                 ⠠
           │                ⠄          │
           │              ⠄            │
           │            ⠠           ⣀⡠⠤◇
           │          ⠠      ⢀⣀⡠⠤⠒⠊⠉   │
       200 ┤         │ ⢀⣀⠤⠔⠒⠉⠁         │
           │       ⠄⡠◆⠉⠁
           │     ⠠⡠⠊ │
           │   ⢠⠔⠊
           │ ⢀⠔⠁
       100 ┤●⠁
           │
           │
           │
           │
         0 ┤
           └┬────────┬────────┬────────┬
            1        2        3        4
                      workers

● prediction   ◆ knee: 2 workers
◇ as good   │ 95% interval
⠄ linear scaling
)");
}

TEST(TerminalPlotTest, SingleRunsReachBeyondTheInterval) {
  const ThroughputPlot plot{
      .title = "runs",
      .points = {{1, 100, 100, 100}, {2, 200, 150, 250, PlotPoint::Mark::kNone, 50, 300}},
      .interval = "95% interval",
      .runs = "95% of runs"};
  const std::string ascii = TerminalPlot(plot, {.columns = 40});
  EXPECT_THAT(ascii, HasSubstr("o prediction   | 95% interval\n: 95% of runs\n"));
  EXPECT_EQ(std::count(ascii.begin(), ascii.end(), ':'), 1 + 8);
  EXPECT_THAT(TerminalPlot(plot, {.columns = 40, .utf8 = true}), HasSubstr("╎ 95% of runs"));
}

TEST(TerminalPlotTest, AZeroCurveLiesOnTheAxis) {
  const std::string text =
      TerminalPlot({.title = "stuck", .points = {{1, 0, 0, 0}, {2, 0, 0, 0}}}, {.columns = 40});
  EXPECT_THAT(text, HasSubstr("\n       0.0 +o                          o\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("linear")));
}

TEST(TerminalPlotTest, NothingIsAnEmptyFrame) {
  const std::string text = TerminalPlot({.title = "none"}, {.columns = 40});
  EXPECT_EQ(text.find_first_of("o#="), text.find("none") + 1) << "in the title only";
}

TEST(TerminalPlotTest, ATextOfOthersCannotDriveTheTerminal) {
  const std::string ascii = TerminalPlot({.title = "a\x1b[31m\n\u00e4"}, {.columns = 40});
  EXPECT_EQ(ascii.substr(0, ascii.find('\n')), "a\\x1b[31m\\x0a?");
  const std::string utf8 =
      TerminalPlot({.title = std::string(100, 'x')}, {.columns = 40, .utf8 = true});
  EXPECT_EQ(utf8.substr(0, utf8.find('\n')), std::string(39, 'x') + "\u2026");
}

TEST(TerminalPlotTest, LinesFitAndPointsAreInOrder) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    const ThroughputPlot plot = PlotOf("random", RandomCurve(seed));
    const int width = 80 + static_cast<int>(seed % 30);
    for (const bool utf8 : {false, true}) {
      const std::vector<std::u32string> lines =
          Lines(TerminalPlot(plot, {.columns = width, .utf8 = utf8}));
      for (const std::u32string& line : lines) EXPECT_LE(line.size(), width);
      // In the frame, by column: every point once, the larger one never below the smaller one.
      const size_t first = plot.scenario.empty() ? 3 : 4;
      std::vector<std::pair<size_t, size_t>> found;
      for (size_t row = 0; row < 16; ++row) {
        const std::u32string& line = lines[first + row];
        const size_t side = line.find_first_of(utf8 ? U"\u2502\u2524" : U"|+");
        ASSERT_NE(side, std::u32string::npos);
        for (size_t column = side + 1; column < line.size(); ++column) {
          if (std::u32string_view(utf8 ? U"\u25cf\u25c7\u25c6" : U"o=#").find(line[column]) !=
              std::u32string_view::npos)
            found.emplace_back(column, row);
        }
      }
      std::sort(found.begin(), found.end());
      ASSERT_EQ(found.size(), plot.points.size());
      for (size_t i = 1; i < found.size(); ++i) {
        EXPECT_LT(found[i - 1].first, found[i].first);
        if (plot.points[i - 1].throughput <= plot.points[i].throughput) {
          EXPECT_GE(found[i - 1].second, found[i].second);
        }
        if (plot.points[i - 1].throughput >= plot.points[i].throughput) {
          EXPECT_LE(found[i - 1].second, found[i].second);
        }
      }
    }
  }
}

TEST(TerminalPlotTest, LongTicksDoNotRunIntoEachOther) {
  for (const int32_t last : {20, 999, 12345, 700000, 2000000000}) {
    const ThroughputPlot plot{.title = "large",
                              .points = {{1, 100, 100, 100}, {last, 100, 100, 100}}};
    const std::vector<std::u32string> lines = Lines(TerminalPlot(plot, {.columns = 40}));
    const std::string labels = Utf8(lines[lines.size() - 4]);
    int64_t previous = 0;
    for (const std::string& label :
         std::vector<std::string>(absl::StrSplit(labels, ' ', absl::SkipEmpty()))) {
      EXPECT_LE(std::stoll(label), last) << labels;
      EXPECT_GT(std::stoll(label), previous) << labels;
      previous = std::stoll(label);
    }
    EXPECT_GT(previous, 0) << labels;
  }
}

TEST(TerminalPlotTest, TheNarrowestAndTheWidestTerminalHaveTheirBounds) {
  for (const auto& [columns, drawn] : {std::pair(1, 40), {39, 40}, {100, 100}, {100000, 160}}) {
    size_t widest = 0;
    for (const std::u32string& line : Lines(TerminalPlot(SmallPlot(), {.columns = columns})))
      widest = std::max(widest, line.size());
    EXPECT_EQ(widest, drawn);
  }
}

}  // namespace
}  // namespace stepcast::client::terminal_plot_test
