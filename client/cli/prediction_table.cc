#include "client/cli/prediction_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/measure_text.h"
#include "client/cli/table.h"

namespace stepcast::client {

namespace {

std::string IntervalText(const ConfidenceInterval& interval) {
  if (interval.lower == interval.upper) return "-";
  return absl::StrCat(NumberText(interval.lower), " .. ", NumberText(interval.upper));
}

// 1, 2, 3, 5 as `1-3, 5`.
std::string CountsText(const std::vector<int32_t>& counts) {
  std::string text;
  for (size_t i = 0; i < counts.size();) {
    size_t last = i;
    while (last + 1 < counts.size() && counts[last + 1] == counts[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ", ", counts[i]);
    if (last > i) absl::StrAppend(&text, "-", counts[last]);
    i = last + 1;
  }
  return text;
}

std::string Warnings(const std::vector<Prediction>& predictions) {
  std::vector<std::pair<std::string, std::vector<int32_t>>> warnings;  // in the order of their first row
  for (const Prediction& prediction : predictions) {
    if (prediction.warning.empty()) continue;
    auto at = std::find_if(warnings.begin(), warnings.end(), [&](const auto& known) { return known.first == prediction.warning; });
    if (at == warnings.end()) at = warnings.insert(warnings.end(), {prediction.warning, {}});
    at->second.push_back(prediction.scenario.workers);
  }
  std::string text;
  for (const auto& [warning, counts] : warnings) {
    absl::StrAppend(&text, "warning (", CountsText(counts), counts.size() == 1 && counts[0] == 1 ? " worker): " : " workers): ", warning, "\n");
  }
  return text;
}

}  // namespace

std::string BottleneckText(Resource resource, int32_t parameter_server) {
  switch (resource) {
    case Resource::kDownlink:
      return absl::StrCat("downlink of server ", parameter_server);
    case Resource::kUplink:
      return absl::StrCat("uplink of server ", parameter_server);
    case Resource::kParameterServer:
      return absl::StrCat("computation of server ", parameter_server);
    case Resource::kWorker:
      return "computation of the workers";
    default:
      return "unknown";
  }
}

std::string PredictionTable(const std::vector<Prediction>& predictions, std::optional<size_t> marked) {
  using Align = Table::Align;
  const double level = predictions.empty() ? 0 : predictions[0].confidence_interval.level;
  const std::string interval = level > 0 ? absl::StrCat(NumberText(level * 100), "% interval") : "interval";
  std::vector<Table::Column> columns{
      {"workers"}, {"examples/s"}, {interval}, {"speed-up"}, {"efficiency"}, {"step p50"}, {"bottleneck", Align::kLeft}};
  if (marked) columns.insert(columns.begin(), Table::Column{"", Align::kLeft});
  Table table(std::move(columns));
  for (size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& prediction = predictions[i];
    std::vector<std::string> row{absl::StrCat(prediction.scenario.workers),
                                 NumberText(prediction.examples_per_second),
                                 IntervalText(prediction.confidence_interval),
                                 NumberText(prediction.speedup),
                                 PercentText(prediction.scaling_efficiency),
                                 DurationText(prediction.step_time.p50),
                                 BottleneckText(prediction.bottleneck, prediction.bottleneck_parameter_server)};
    if (marked) row.insert(row.begin(), i == *marked ? "->" : "");
    table.AddRow(std::move(row));
  }
  return table.Text() + Warnings(predictions);
}

std::string RecommendationText(const RecommendWorkersResponse& response) {
  const auto chosen = std::find_if(response.frontier.begin(), response.frontier.end(), [&](const Prediction& prediction) {
    return prediction.scenario.workers == response.workers && prediction.scenario.parameter_servers.value_or(0) == response.parameter_servers;
  });
  const std::string first = response.workers > 0 ? response.reason : absl::StrCat("No recommendation: ", response.infeasible_reason);
  std::optional<size_t> marked;
  if (chosen != response.frontier.end()) marked = static_cast<size_t>(chosen - response.frontier.begin());
  return absl::StrCat(first, "\n\n", PredictionTable(response.frontier, marked));
}

}  // namespace stepcast::client
