// `compare`: the predictions of simpler models, beside the simulation.
#include <CLI/App.hpp>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/flags/simulation_flags.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/prediction_table.h"
#include "client/cli/texts/table.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

class CompareQuestion : public Question {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "compare", "What simpler models of training predict, beside the simulation");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->required()->type_name("");
    AddParsedOption(
        *app, "--workers", "LIST", "Numbers of workers: 1-16 or 1,2,4 (default 1-8)",
        [](const std::string& text) { return ParseWorkerList(text); },
        [this](std::vector<int32_t> counts) { counts_ = std::move(counts); });
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByUser,
                      ScenarioFlags::Offsets::kForbidden);
    simulation_.Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return IsFile(profile_); }

  std::string Activity() const override { return "comparing"; }

  absl::StatusOr<v1::StartJobRequest> Ask(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return source.status();
    scenario_.Explain(session);
    v1::StartJobRequest asked;
    v1::CompareModelsRequest& request = *asked.mutable_compare_models();
    SetSource(*std::move(source), request);
    request.mutable_worker_counts()->Assign(counts_.begin(), counts_.end());
    *request.mutable_scenario() = scenario_.scenario();
    *request.mutable_options() = simulation_.options();
    return asked;
  }

  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, profile_, status);
  }

  ExitCode Answer(const Session& session, const v1::StartJobRequest&,
                  const google::protobuf::Message& reply) const override {
    const auto& response = static_cast<const v1::CompareModelsResponse&>(reply);
    return session.Answer(ToJson(response), [&] { return ComparisonText(response); });
  }

 private:
  std::string profile_;
  std::vector<int32_t> counts_;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

std::string TitleOf(v1::ModelPrediction::Model model) {
  switch (model) {
    case v1::ModelPrediction::QUEUEING:
      return "queueing (Lin)";
    case v1::ModelPrediction::CYNTHIA:
      return "Cynthia";
    case v1::ModelPrediction::CYNTHIA_HALVED:
      return "Cynthia, half T_C";
    case v1::ModelPrediction::COARSE_TENSORS:
      return "coarse tensors";
    case v1::ModelPrediction::POLLUX:
      return "Pollux, fitted";
    case v1::ModelPrediction::NO_OVERLAP:
      return "no overlap";
    case v1::ModelPrediction::PALEO:
      return "Paleo";
    case v1::ModelPrediction::BUBBLE_FORMULA:
      return "bubble formula";
    case v1::ModelPrediction::LINEAR_SCALING:
      return "linear scaling";
    case v1::ModelPrediction::SIMAI:
      return "SimAI's sum";
    default:
      return v1::ModelPrediction::Model_Name(v1::ModelPrediction::MODEL_UNSPECIFIED);
  }
}

std::string CellOf(const v1::ModelPrediction& model) {
  if (!model.unavailable_reason().empty()) return "-";
  const auto percent = static_cast<int64_t>(std::llround(model.relative_difference() * 100));
  return absl::StrCat(NumberText(model.examples_per_second()), " (", percent >= 0 ? "+" : "",
                      percent, "%)");
}

std::string InputsText(const v1::CoarseProfile& inputs) {
  return absl::StrCat(
      "phases of one worker's step: downlink ", SecondsText(inputs.downlink_phase_seconds()),
      ", worker ", SecondsText(inputs.worker_phase_seconds()), ", uplink ",
      SecondsText(inputs.uplink_phase_seconds()), ", server ",
      SecondsText(inputs.parameter_server_phase_seconds()), "\nCynthia: T_P ",
      SecondsText(inputs.computation_seconds()), ", T_C ", SecondsText(inputs.transfer_seconds()),
      ", U_1 ", PercentText(inputs.network_utilization()), ", with half of T_C ",
      PercentText(inputs.halved_network_utilization()), "\n");
}

std::string InputsText(const v1::CollectiveInputs& inputs) {
  return absl::StrCat(
      "computation of one worker's step ", SecondsText(inputs.computation_seconds()),
      ", collectives of ", BytesText(inputs.size_bytes()), "\nPollux: T_n ",
      SecondsText(inputs.pollux_seconds()), " and ",
      SecondsText(inputs.pollux_seconds_per_worker()), " a worker beyond two, exponent ",
      NumberText(inputs.pollux_exponent()), "\n");
}

std::string InputsText(const v1::PipelineInputs& inputs) {
  const double weights = inputs.slowest_weight_seconds();
  return absl::StrCat(
      "a micro-batch takes the slowest device ", SecondsText(inputs.slowest_seconds()),
      weights > 0 ? absl::StrCat(" (of that gradients of weights ", SecondsText(weights), ")") : "",
      ", devices on average ", SecondsText(inputs.mean_seconds()), "; the largest transfer ",
      SecondsText(inputs.transfer_seconds()), ", the end of a step ",
      SecondsText(inputs.rest_seconds()), "\n");
}

// Each reason once.
std::string ReasonsText(const v1::CompareModelsResponse& response) {
  std::set<std::string> lines;
  for (const v1::ModelComparison& comparison : response.comparisons()) {
    for (const v1::ModelPrediction& model : comparison.models()) {
      if (!model.unavailable_reason().empty())
        lines.insert(absl::StrCat(TitleOf(model.model()), ": ", model.unavailable_reason(), "\n"));
    }
  }
  std::string text;
  for (const std::string& line : lines) absl::StrAppend(&text, line);
  return text;
}

}  // namespace

std::string ComparisonText(const v1::CompareModelsResponse& response) {
  std::vector<Table::Column> columns{{"workers"}, {"simulated examples/s"}};
  if (!response.comparisons().empty()) {
    for (const v1::ModelPrediction& model : response.comparisons(0).models())
      columns.push_back({TitleOf(model.model())});
  }
  Table table(std::move(columns));
  Predictions predictions;
  for (const v1::ModelComparison& comparison : response.comparisons()) {
    std::vector<std::string> row{absl::StrCat(comparison.workers()),
                                 NumberText(comparison.prediction().examples_per_second())};
    for (const v1::ModelPrediction& model : comparison.models()) row.push_back(CellOf(model));
    table.AddRow(std::move(row));
    *predictions.Add() = comparison.prediction();
  }
  return absl::StrCat(table.Text(), ReasonsText(response), AssumptionsText(predictions),
                      WarningsText(predictions), "\n",
                      response.has_pipeline_inputs()     ? InputsText(response.pipeline_inputs())
                      : response.has_collective_inputs() ? InputsText(response.collective_inputs())
                                                         : InputsText(response.inputs()));
}

std::unique_ptr<Question> MakeCompareQuestion() { return std::make_unique<CompareQuestion>(); }

}  // namespace stepcast::client
