#include "client/cli/throughput_plot.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/cli/measure_text.h"
#include "client/cli/prediction_table.h"

namespace stepcast::client {

namespace {

const char* OrderNameOf(TransferOrder order) {
  switch (order) {
    case TransferOrder::kGraph:
      return "graph order";
    case TransferOrder::kRecorded:
      return "recorded order";
    case TransferOrder::kRandom:
      return "random order";
    case TransferOrder::kReverse:
      return "reverse order";
    case TransferOrder::kTic:
      return "TIC order";
    case TransferOrder::kTac:
      return "TAC order";
    case TransferOrder::kExplicit:
      return "explicit order";
    default:
      return "";
  }
}

std::string ScenarioText(const Scenario& scenario) {
  const int32_t servers = scenario.parameter_servers.value_or(1);
  std::string text = absl::StrCat(servers, servers == 1 ? " server" : " servers");
  if (scenario.bandwidth_bytes_per_second)
    absl::StrAppend(&text, ", ", NumberText(*scenario.bandwidth_bytes_per_second / 1e6),
                    " MB/s links");
  if (scenario.synchronization == Synchronization::kAsynchronous)
    absl::StrAppend(&text, ", asynchronous");
  if (scenario.synchronization == Synchronization::kSynchronous)
    absl::StrAppend(&text, ", synchronous");
  if (const std::string order = OrderNameOf(scenario.transfer_order); !order.empty())
    absl::StrAppend(&text, ", ", order);
  return text;
}

// NaN is not.
bool MayBeDrawn(double throughput) { return throughput >= 0 && throughput <= kAxisMax; }

PlotPoint PointOf(const Prediction& prediction) {
  const double value = prediction.examples_per_second;
  const ConfidenceInterval& interval = prediction.confidence_interval;
  const bool has_interval = interval.lower <= value && value <= interval.upper;
  PlotPoint point{.workers = prediction.scenario.workers,
                  .throughput = value,
                  .lower = has_interval ? std::max(interval.lower, 0.0) : value,
                  .upper = has_interval ? std::min(interval.upper, kAxisMax) : value};
  const ConfidenceInterval& runs = prediction.run_interval;
  if (runs.lower <= point.lower && point.upper <= runs.upper) {
    point.run_lower = std::max(runs.lower, 0.0);
    point.run_upper = std::min(runs.upper, kAxisMax);
  }
  return point;
}

// What can be drawn, ascending in workers.
std::vector<Prediction> Drawn(const std::vector<Prediction>& predictions) {
  std::vector<Prediction> drawn;
  for (const Prediction& prediction : predictions) {
    if (MayBeDrawn(prediction.examples_per_second)) drawn.push_back(prediction);
  }
  const auto workers = [](const Prediction& prediction) { return prediction.scenario.workers; };
  std::stable_sort(drawn.begin(), drawn.end(), [&](const Prediction& a, const Prediction& b) {
    return workers(a) < workers(b);
  });
  const auto last = std::unique(
      drawn.begin(), drawn.end(),
      [&](const Prediction& a, const Prediction& b) { return workers(a) == workers(b); });
  drawn.erase(last, drawn.end());
  return drawn;
}

// REQUIRES: `drawn` as Drawn made it.
ThroughputPlot Unmarked(const std::string& title, const std::vector<Prediction>& drawn) {
  ThroughputPlot plot{.title = title};
  for (const Prediction& prediction : drawn) {
    const PlotPoint& point = plot.points.emplace_back(PointOf(prediction));
    if (point.lower < point.upper) plot.interval = IntervalTitle(drawn);
    if (point.run_lower < point.run_upper) plot.runs = RunsTitle(drawn);
    const double one_worker = point.throughput / prediction.speedup;
    if (plot.one_worker == 0 && one_worker > 0 && MayBeDrawn(one_worker))
      plot.one_worker = one_worker;
  }
  if (!drawn.empty()) plot.scenario = ScenarioText(drawn[0].scenario);
  return plot;
}

}  // namespace

ThroughputPlot PlotOf(const std::string& title, const std::vector<Prediction>& predictions) {
  const std::vector<Prediction> drawn = Drawn(predictions);
  ThroughputPlot plot = Unmarked(title, drawn);
  size_t knee = 0;
  double most = 0;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const double merit = drawn[i].examples_per_second * drawn[i].scaling_efficiency;
    if (!(merit > most)) continue;
    knee = i;
    most = merit;
  }
  if (drawn.size() > 1 && most > 0) {
    plot.points[knee].mark = PlotPoint::Mark::kChosen;
    plot.chosen = "knee";
  }
  return plot;
}

ThroughputPlot PlotOf(const std::string& title, const RecommendWorkersResponse& response) {
  const int32_t workers = response.nearest ? response.nearest->workers : response.workers;
  int32_t servers =
      response.nearest ? response.nearest->parameter_servers : response.parameter_servers;
  const auto servers_of = [](const Prediction& prediction) {
    return prediction.scenario.parameter_servers.value_or(0);
  };
  if (workers == 0 && !response.frontier.empty()) servers = servers_of(response.frontier[0]);
  std::vector<Prediction> curve;
  for (const Prediction& prediction : response.frontier) {
    if (servers_of(prediction) == servers) curve.push_back(prediction);
  }
  ThroughputPlot plot = Unmarked(title, Drawn(curve));
  for (PlotPoint& point : plot.points) {
    const auto is_it = [&](const Tie& tie) {
      return tie.workers == point.workers && tie.parameter_servers == servers;
    };
    if (point.workers == workers) {
      point.mark = PlotPoint::Mark::kChosen;
      plot.chosen = response.nearest ? "nearest to the constraints" : "recommended";
    } else if (std::any_of(response.ties.begin(), response.ties.end(), is_it)) {
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

}  // namespace stepcast::client
