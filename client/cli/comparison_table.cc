#include "client/cli/comparison_table.h"

#include <chrono>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/measure_text.h"
#include "client/cli/prediction_table.h"
#include "client/cli/table.h"

namespace stepcast::client {

namespace {

std::string TitleOf(ComparedModel model) {
  switch (model) {
    case ComparedModel::kQueueing:
      return "queueing (Lin)";
    case ComparedModel::kCynthia:
      return "Cynthia";
    case ComparedModel::kCynthiaHalved:
      return "Cynthia, half T_C";
    case ComparedModel::kCoarseTensors:
      return "coarse tensors";
    default:
      return std::string(ComparedModelName(model));
  }
}

std::string CellOf(const ModelPrediction& model) {
  if (!model.unavailable_reason.empty()) return "-";
  const auto percent = static_cast<int64_t>(std::llround(model.relative_difference * 100));
  return absl::StrCat(NumberText(model.examples_per_second), " (", percent >= 0 ? "+" : "", percent,
                      "%)");
}

std::string InputsText(const CoarseProfile& inputs) {
  return absl::StrCat(
      "phases of one worker's step: downlink ", SecondsText(inputs.downlink_phase_seconds),
      ", worker ", SecondsText(inputs.worker_phase_seconds), ", uplink ",
      SecondsText(inputs.uplink_phase_seconds), ", server ",
      SecondsText(inputs.parameter_server_phase_seconds), "\nCynthia: T_P ",
      SecondsText(inputs.computation_seconds), ", T_C ", SecondsText(inputs.transfer_seconds),
      ", U_1 ", PercentText(inputs.network_utilization), ", with half of T_C ",
      PercentText(inputs.halved_network_utilization), "\n");
}

// Each reason once.
std::string ReasonsText(const CompareModelsResponse& response) {
  std::set<std::string> lines;
  for (const ModelComparison& comparison : response.comparisons) {
    for (const ModelPrediction& model : comparison.models) {
      if (!model.unavailable_reason.empty())
        lines.insert(absl::StrCat(TitleOf(model.model), ": ", model.unavailable_reason, "\n"));
    }
  }
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line);
  return text;
}

}  // namespace

std::string ComparisonText(const CompareModelsResponse& response) {
  std::vector<Table::Column> columns{{"workers"}, {"simulated examples/s"}};
  if (!response.comparisons.empty()) {
    for (const ModelPrediction& model : response.comparisons.front().models)
      columns.push_back({TitleOf(model.model)});
  }
  Table table(std::move(columns));
  for (const ModelComparison& comparison : response.comparisons) {
    std::vector<std::string> row{absl::StrCat(comparison.workers),
                                 NumberText(comparison.prediction.examples_per_second)};
    for (const ModelPrediction& model : comparison.models) row.push_back(CellOf(model));
    table.AddRow(std::move(row));
  }
  std::vector<Prediction> predictions;
  for (const ModelComparison& comparison : response.comparisons)
    predictions.push_back(comparison.prediction);
  return absl::StrCat(table.Text(), ReasonsText(response), WarningsText(predictions), "\n",
                      InputsText(response.inputs));
}

}  // namespace stepcast::client
