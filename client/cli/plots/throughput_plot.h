// The throughput curve: as it is drawn, its drawings with characters and as an image, and the flag
// that asks for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/session.h"
#include "client/cli/texts/prediction_table.h"

#include "stepcast/v1/recommendation.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stepcast::client {

// An axis of a plot: its span and its ticks.
struct PlotAxis {
  double from = 0;
  double to = 1;              // more than `from`
  std::vector<double> ticks;  // ascending, inside, their distance 1, 2 or 5 times a power of ten
  int decimals = 0;           // of the ticks

  // The place of a value: 0 at `from`, 1 at `to`.
  double Fraction(double value) const { return (value - from) / (to - from); }
  std::string TickText(double tick) const;
};

// The largest number an axis can reach.
inline constexpr double kAxisMax = 1e12;

// From 0 to the first tick that is not below `largest`, 1 where that is less than 1e-6; at most
// `ticks_max` ticks. REQUIRES: largest <= kAxisMax, ticks_max >= 3.
PlotAxis AxisFromZero(double largest, int ticks_max);

// From the first to the last count, or one further on either side where they are the same; ticks at
// whole numbers, at most `ticks_max`. REQUIRES: first <= last, ticks_max >= 3.
PlotAxis AxisOfCounts(int first, int last, int ticks_max);

struct PlotPoint {
  enum class Mark { kNone, kTie, kChosen };

  int32_t workers = 0;
  double throughput = 0;  // examples/s of all workers, 0 to kAxisMax
  double lower = 0;       // of its interval, which holds it, within the same bounds
  double upper = 0;
  Mark mark = Mark::kNone;
  double run_lower = 0;  // where single runs fall, which holds the interval; 0 and 0: not known
  double run_upper = 0;

  friend bool operator==(const PlotPoint&, const PlotPoint&) = default;
};

// The throughput curve as it is drawn: axes, points, marks, and the line of linear scaling.
struct ThroughputPlot {
  std::string title;              // a text of others
  std::string scenario;           // but for the number of workers; empty: there are no points
  std::vector<PlotPoint> points;  // ascending in workers
  std::string interval;           // what to call the intervals; empty: none has a width
  std::string runs;               // what to call where single runs fall; empty: no width either
  std::string chosen;             // what to call the chosen point; empty: there is none
  bool ties = false;
  double one_worker = 0;  // examples/s of one worker, which linear scaling multiplies; 0: not known
};

// The predictions, with the knee among them: the most throughput times efficiency, the fewest
// workers of equal ones. Of one point there is none. A value that is no number, or beyond what a
// point can be, is left out, and so is every count but its first.
ThroughputPlot PlotOf(const std::string& title, const Predictions& predictions);

// The choices tried with the number of servers that is recommended, or comes nearest to the
// constraints; the others have curves of their own.
ThroughputPlot PlotOf(const std::string& title, const v1::RecommendWorkersResponse& response);

// The axes for what is drawn.
PlotAxis WorkersAxis(const ThroughputPlot& plot, int ticks_max);
PlotAxis ThroughputAxis(const ThroughputPlot& plot, int ticks_max);

// A straight line, its ends as numbers of workers and examples/s.
struct PlotLine {
  double from_workers = 0;
  double from_throughput = 0;
  double to_workers = 0;
  double to_throughput = 0;
};

// The part of linear scaling that lies between the axes, if any does.
std::optional<PlotLine> LinearScaling(const ThroughputPlot& plot, const PlotAxis& workers,
                                      const PlotAxis& throughput);

// A whole SVG 1.1 file of 760 by 480 that refers to nothing outside: title, axes with ticks, the
// intervals as a band, linear scaling, legend. Points carry their numbers as titles, which browsers
// show.
std::string SvgPlot(const ThroughputPlot& plot);

// Title, 16 rows of plot, axes and legend, in lines that are no wider than the terminal; a terminal
// of less than 40 columns counts as 40, one of more than 160 as 160. With UTF-8 lines are dots of
// Braille, two across and four down a character; without it there is ASCII only, and no line from
// point to point.
std::string TerminalPlot(const ThroughputPlot& plot, const Terminal& terminal);

// The title of a plot of the job that a request is about: the profile's model, else its display
// name, of a stored profile its name.
template <typename Request>
std::string PlotTitle(const Request& request) {
  if (!request.has_inline_profile()) return request.profile();
  const std::string& model = request.inline_profile().model();
  return model.empty() ? request.inline_profile().display_name() : model;
}

// The flag `--plot`: the throughput curve, drawn below the table or to a file.
class PlotFlag {
 public:
  // This outlives the parse.
  void Declare(CLI::App& app);

  bool given() const { return place_.has_value(); }
  // Checks that there would be nothing but JSON where JSON is asked for: kDone, or kMisused,
  // reported.
  ExitCode Check(const Session& session) const;
  // The text below the table: an empty line and the plot, where it was asked for in the terminal.
  std::string Text(const Session& session, const ThroughputPlot& plot) const;
  // Writes the file, where one was asked for. kRefused, reported, where it cannot be written.
  ExitCode Save(const Session& session, const ThroughputPlot& plot) const;

 private:
  std::optional<std::string> place_;  // empty: the terminal
};

}  // namespace stepcast::client
