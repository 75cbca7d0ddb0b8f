// The throughput curve as it is drawn: points, marks, and the line of linear scaling.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/plot_axis.h"

#include "stepcast/recommendation.h"

namespace stepcast::client {

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
// workers of equal ones. Of one point there is none. What is no number, or beyond what a point can
// be, is left out, and so is every count but its first.
ThroughputPlot PlotOf(const std::string& title, const std::vector<Prediction>& predictions);

// What was tried with the number of servers that is recommended, or comes nearest to the
// constraints; the others have curves of their own.
ThroughputPlot PlotOf(const std::string& title, const RecommendWorkersResponse& response);

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

// As much of linear scaling as lies between the axes, if any does.
std::optional<PlotLine> LinearScaling(const ThroughputPlot& plot, const PlotAxis& workers,
                                      const PlotAxis& throughput);

}  // namespace stepcast::client
