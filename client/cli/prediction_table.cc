#include "client/cli/prediction_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/measure_text.h"
#include "client/cli/table.h"

namespace stepcast::client {

namespace {

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

// The same for warnings that differ only in their numbers.
std::string Shape(const std::string& warning) {
  std::string shape;
  for (const char c : warning) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(c)) == 0 && c != '.') shape.push_back(c);
  }
  return shape;
}

struct Warning {
  std::string text;  // of its first row
  std::string shape;
  bool alike = true;  // every row has this text
  std::vector<int32_t> counts;
};

std::vector<Warning> Collect(const std::vector<Prediction>& predictions) {
  std::vector<Warning> warnings;  // in the order of their first row
  for (const Prediction& prediction : predictions) {
    if (prediction.warning.empty()) continue;
    const std::string shape = Shape(prediction.warning);
    auto at = std::find_if(warnings.begin(), warnings.end(),
                           [&](const Warning& known) { return known.shape == shape; });
    if (at == warnings.end())
      at = warnings.insert(warnings.end(), {.text = prediction.warning, .shape = shape});
    at->alike = at->alike && at->text == prediction.warning;
    at->counts.push_back(prediction.scenario.workers);
  }
  return warnings;
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

std::string IntervalText(const ConfidenceInterval& interval) {
  if (interval.lower == interval.upper) return "-";
  return absl::StrCat(NumberText(interval.lower), " .. ", NumberText(interval.upper));
}

std::string WarningsText(const std::vector<Prediction>& predictions) {
  std::string text;
  for (const Warning& warning : Collect(predictions)) {
    // With several numbers of servers a number of workers comes several times.
    std::vector<int32_t> counts = warning.counts;
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    absl::StrAppend(&text, "warning (", CountsText(counts),
                    counts.back() == 1 ? " worker" : " workers");
    if (!warning.alike) absl::StrAppend(&text, "; the numbers are those for ", warning.counts[0]);
    absl::StrAppend(&text, "): ", warning.text, "\n");
  }
  return text;
}

std::string IntervalTitle(const std::vector<Prediction>& predictions) {
  const double level = predictions.empty() ? 0 : predictions[0].confidence_interval.level;
  return level > 0 ? absl::StrCat(level * 100, "% interval") : "interval";
}

std::string RunsTitle(const std::vector<Prediction>& predictions) {
  const double level = predictions.empty() ? 0 : predictions[0].run_interval.level;
  return level > 0 ? absl::StrCat(level * 100, "% of runs") : "";
}

std::string RegimesText(const std::vector<Regime>& regimes) {
  int32_t runs = 0;
  for (const Regime& regime : regimes)
    runs += regime.replications + regime.other_start_replications;
  std::string text;
  for (const Regime& regime : regimes) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", NumberText(regime.examples_per_second), " in ",
                    regime.replications + regime.other_start_replications, " of ", runs);
  }
  return text;
}

std::string PredictionTable(const std::vector<Prediction>& predictions) {
  const bool regimes =
      std::any_of(predictions.begin(), predictions.end(),
                  [](const Prediction& prediction) { return !prediction.regimes.empty(); });
  const std::string runs = RunsTitle(predictions);
  std::vector<Table::Column> columns{{"workers"}, {"examples/s"}, {IntervalTitle(predictions)}};
  if (!runs.empty()) columns.push_back({runs});
  for (const char* title : {"speed-up", "efficiency", "step p50"}) columns.push_back({title});
  columns.push_back({"bottleneck", Table::Align::kLeft});
  if (regimes) columns.push_back({"two regimes, by runs", Table::Align::kLeft});
  Table table(columns);
  for (const Prediction& prediction : predictions) {
    std::vector<std::string> row{absl::StrCat(prediction.scenario.workers),
                                 NumberText(prediction.examples_per_second),
                                 IntervalText(prediction.confidence_interval)};
    if (!runs.empty()) row.push_back(IntervalText(prediction.run_interval));
    row.push_back(NumberText(prediction.speedup));
    row.push_back(PercentText(prediction.scaling_efficiency));
    row.push_back(DurationText(prediction.step_time.p50));
    row.push_back(BottleneckText(prediction.bottleneck, prediction.bottleneck_parameter_server));
    if (regimes) row.push_back(RegimesText(prediction.regimes));
    table.AddRow(std::move(row));
  }
  return table.Text() + WarningsText(predictions);
}

}  // namespace stepcast::client
