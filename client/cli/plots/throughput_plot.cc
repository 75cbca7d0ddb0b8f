#include "client/cli/plots/throughput_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/flags/quantity.h"

namespace stepcast::client {

namespace {

// A step of 1, 2 or 5 times 10^exponent.
struct TickStep {
  double size = 1;
  int exponent = 0;
};

// The least step with which `fits`, at least 10^exponent.
template <typename Fits>
TickStep LeastStep(int exponent, const Fits& fits) {
  for (;; ++exponent) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double size =
          exponent < 0 ? digit / std::pow(10.0, -exponent) : digit * std::pow(10.0, exponent);
      if (fits(size)) return {size, exponent};
    }
  }
}

void AddTicks(PlotAxis& axis, const TickStep& step, double first, double last) {
  const int count = static_cast<int>(last - first);
  for (int i = 0; i <= count; ++i) axis.ticks.push_back((first + i) * step.size);
  axis.decimals = std::max(0, -step.exponent);
}

// NaN is not.
bool MayBeDrawn(double throughput) { return throughput >= 0 && throughput <= kAxisMax; }

PlotPoint PointOf(const v1::Prediction& prediction) {
  const double value = prediction.examples_per_second();
  const v1::ConfidenceInterval& interval = prediction.confidence_interval();
  const bool has_interval = interval.lower() <= value && value <= interval.upper();
  PlotPoint point{.workers = WorkersOf(prediction),
                  .throughput = value,
                  .lower = has_interval ? std::max(interval.lower(), 0.0) : value,
                  .upper = has_interval ? std::min(interval.upper(), kAxisMax) : value};
  const v1::ConfidenceInterval& runs = prediction.run_interval();
  if (runs.lower() <= point.lower && point.upper <= runs.upper()) {
    point.run_lower = std::max(runs.lower(), 0.0);
    point.run_upper = std::min(runs.upper(), kAxisMax);
  }
  return point;
}

// The predictions that can be drawn, ascending in workers.
Predictions Drawn(const Predictions& predictions) {
  std::vector<const v1::Prediction*> drawn;
  for (const v1::Prediction& prediction : predictions) {
    if (MayBeDrawn(prediction.examples_per_second())) drawn.push_back(&prediction);
  }
  std::stable_sort(drawn.begin(), drawn.end(),
                   [](const v1::Prediction* a, const v1::Prediction* b) {
                     return WorkersOf(*a) < WorkersOf(*b);
                   });
  Predictions result;
  for (const v1::Prediction* prediction : drawn) {
    const bool again =
        !result.empty() && WorkersOf(*prediction) == WorkersOf(result[result.size() - 1]);
    if (!again) *result.Add() = *prediction;
  }
  return result;
}

// REQUIRES: `drawn` as Drawn made it.
ThroughputPlot Unmarked(const std::string& title, const Predictions& drawn) {
  ThroughputPlot plot{.title = title};
  for (const v1::Prediction& prediction : drawn) {
    const PlotPoint& point = plot.points.emplace_back(PointOf(prediction));
    if (point.lower < point.upper) plot.interval = IntervalTitle(drawn);
    if (point.run_lower < point.run_upper) plot.runs = RunsTitle(drawn);
    const double one_worker = point.throughput / prediction.speedup();
    if (plot.one_worker == 0 && one_worker > 0 && MayBeDrawn(one_worker))
      plot.one_worker = one_worker;
  }
  if (!drawn.empty()) plot.scenario = ScenarioText(drawn[0]);
  return plot;
}

}  // namespace

std::string PlotAxis::TickText(double tick) const {
  std::array<char, 400> text{};  // holds the longest double
  std::snprintf(text.data(), text.size(), "%.*f", decimals, tick);
  return text.data();
}

PlotAxis AxisFromZero(double largest, int ticks_max) {
  constexpr double kLeast = 1e-6;
  constexpr int kMinExponent = -7;
  PlotAxis axis;
  const double top = largest < kLeast ? 1 : largest;
  const TickStep step =
      LeastStep(kMinExponent, [&](double size) { return std::ceil(top / size) <= ticks_max - 1; });
  AddTicks(axis, step, 0, std::ceil(top / step.size));
  axis.to = axis.ticks.back();
  return axis;
}

PlotAxis AxisOfCounts(int first, int last, int ticks_max) {
  PlotAxis axis;
  axis.from = first == last ? first - 1.0 : first;
  axis.to = first == last ? last + 1.0 : last;
  const auto ticks = [&](double size) {
    return std::floor(axis.to / size) - std::ceil(axis.from / size) + 1;
  };
  const TickStep step = LeastStep(0, [&](double size) { return ticks(size) <= ticks_max; });
  AddTicks(axis, step, std::ceil(axis.from / step.size), std::floor(axis.to / step.size));
  return axis;
}

ThroughputPlot PlotOf(const std::string& title, const Predictions& predictions) {
  const Predictions drawn = Drawn(predictions);
  ThroughputPlot plot = Unmarked(title, drawn);
  int knee = 0;
  double most = 0;
  for (int i = 0; i < drawn.size(); ++i) {
    const double merit = drawn[i].examples_per_second() * drawn[i].scaling_efficiency();
    if (!(merit > most)) continue;
    knee = i;
    most = merit;
  }
  if (drawn.size() > 1 && most > 0) {
    plot.points[static_cast<size_t>(knee)].mark = PlotPoint::Mark::kChosen;
    // At the end of the curve nothing says that it is one.
    plot.chosen = knee + 1 < drawn.size() ? "knee" : "no knee before";
  }
  return plot;
}

namespace {

const char* NameOfChosen(const v1::RecommendWorkersResponse& response) {
  if (response.has_nearest()) return "nearest to the constraints";
  switch (response.workers_edge()) {
    case v1::ONLY_CHOICE:
      return "the only number asked about";
    case v1::AT_LARGEST_ASKED:
    case v1::AT_SMALLEST_ASKED:
      return "best of those asked about";
    default:
      return "recommended";
  }
}

}  // namespace

ThroughputPlot PlotOf(const std::string& title, const v1::RecommendWorkersResponse& response) {
  const int32_t workers =
      response.has_nearest() ? response.nearest().workers() : response.workers();
  int32_t servers = response.has_nearest() ? response.nearest().parameter_servers()
                                           : response.parameter_servers();
  if (workers == 0 && !response.frontier().empty()) servers = ServersOf(response.frontier(0));
  Predictions curve;
  for (const v1::Prediction& prediction : response.frontier()) {
    if (ServersOf(prediction) == servers) *curve.Add() = prediction;
  }
  ThroughputPlot plot = Unmarked(title, Drawn(curve));
  for (PlotPoint& point : plot.points) {
    const auto is_it = [&](const v1::Tie& tie) {
      return tie.workers() == point.workers && tie.parameter_servers() == servers;
    };
    if (point.workers == workers) {
      point.mark = PlotPoint::Mark::kChosen;
      plot.chosen = NameOfChosen(response);
    } else if (std::any_of(response.ties().begin(), response.ties().end(), is_it)) {
      point.mark = PlotPoint::Mark::kTie;
      plot.ties = true;
    }
  }
  return plot;
}

PlotAxis WorkersAxis(const ThroughputPlot& plot, int ticks_max) {
  if (plot.points.empty()) return AxisOfCounts(0, 1, ticks_max);
  return AxisOfCounts(plot.points.front().workers, plot.points.back().workers, ticks_max);
}

PlotAxis ThroughputAxis(const ThroughputPlot& plot, int ticks_max) {
  double largest = 0;
  for (const PlotPoint& point : plot.points)
    largest = std::max({largest, point.upper, point.run_upper});
  return AxisFromZero(largest, ticks_max);
}

std::optional<PlotLine> LinearScaling(const ThroughputPlot& plot, const PlotAxis& workers,
                                      const PlotAxis& throughput) {
  if (!(plot.one_worker > 0)) return std::nullopt;
  const double from = std::max(workers.from, 0.0);
  const double to = std::min(workers.to, throughput.to / plot.one_worker);
  if (!(from < to)) return std::nullopt;
  return PlotLine{.from_workers = from,
                  .from_throughput = from * plot.one_worker,
                  .to_workers = to,
                  .to_throughput = to * plot.one_worker};
}

namespace {

// A name without the ending is more likely the PROFILE, which must not be written over.
absl::StatusOr<std::string> ParsePlace(const std::string& text) {
  if (text.empty() || absl::EndsWith(text, ".svg")) return text;
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" does not end in .svg; a plot in the terminal is asked for after PROFILE"));
}

}  // namespace

void PlotFlag::Declare(CLI::App& app) {
  AddParsedOption(app, "--plot", "[FILE.svg]",
                  "Draw examples/s over workers: below the table,\nin UTF-8 where the locale has "
                  "it, or as an image to this file",
                  ParsePlace, [this](std::string place) { place_ = std::move(place); })
      ->expected(0, 1);
}

ExitCode PlotFlag::Check(const Session& session) const {
  if (place_ != "" || session.output != OutputFormat::kJson) return ExitCode::kDone;
  return session.Misused(
      "--plot: with --output json it needs a FILE.svg, a plot in the terminal is not JSON");
}

std::string PlotFlag::Text(const Session& session, const ThroughputPlot& plot) const {
  return place_ == "" ? absl::StrCat("\n", TerminalPlot(plot, session.console.terminal)) : "";
}

ExitCode PlotFlag::Save(const Session& session, const ThroughputPlot& plot) const {
  if (!place_ || place_->empty()) return ExitCode::kDone;
  std::ofstream file(*place_, std::ios::binary | std::ios::trunc);
  file << SvgPlot(plot) << std::flush;
  return file ? ExitCode::kDone
              : session.Refused(absl::DataLossError(absl::StrCat("cannot write ", *place_)));
}

}  // namespace stepcast::client
