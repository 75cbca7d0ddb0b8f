// `predict`: how fast the job runs.
#include <CLI/App.hpp>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/flags/simulation_flags.h"
#include "client/cli/plots/throughput_plot.h"
#include "client/cli/texts/prediction_table.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

class PredictQuestion : public Question {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "predict", "How fast the job runs, for one or more numbers of workers");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->required()->type_name("");
    AddParsedOption(
        *app, "--workers", "LIST",
        "Numbers of workers: 1-16 or 1,2,4 (default 1-16, with several workers a node what fills "
        "up "
        "to 8 nodes, or what --worker-group counts)",
        [](const std::string& text) { return ParseWorkerList(text); },
        [this](std::vector<int32_t> counts) { counts_ = std::move(counts); });
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kAllowed);
    simulation_.Declare(*app);
    plan_.Declare(*app);
    plot_.Declare(*app);
    app->add_flag("--passes", passes_,
                  "Below the table: what a worker computes forward, backward and in the optimizer "
                  "in a step, where the profile's operations say which they belong to");
    AddValueOption<int32_t>(
        *app, "--over-time", "N",
        "Below the table: throughput of one run in N windows from its begin, 1 to 200",
        [this](int32_t points) { series_points_ = points; });
    return app;
  }

  bool NeedsNoServer() const override { return IsFile(profile_); }

  std::string Activity() const override { return "predicting"; }

  ExitCode Check(const Session& session) const override {
    if (plan_.any() && !plan_.has_examples()) {
      return session.Misused(
          "prices and failures need --examples, or --epochs and --dataset: they are of a training");
    }
    if (series_points_.has_value() && *series_points_ < 1)
      return session.Misused(
          absl::StrCat("--over-time: ", *series_points_, " is not from 1 to 200"));
    return plot_.Check(session);
  }

  std::string_view AnswerFlag() const override { return plot_.given() ? "--plot" : ""; }

  absl::StatusOr<v1::StartJobRequest> Ask(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return source.status();
    scenario_.Explain(session);
    v1::StartJobRequest asked;
    v1::PredictThroughputRequest& request = *asked.mutable_predict_throughput();
    SetSource(*std::move(source), request);
    const std::vector<int32_t> counts = Counts();
    request.mutable_worker_counts()->Assign(counts.begin(), counts.end());
    *request.mutable_scenario() = scenario_.scenario();
    *request.mutable_options() = simulation_.options();
    if (plan_.any()) *request.mutable_plan() = plan_.plan();
    if (series_points_.has_value()) request.set_series_points(*series_points_);
    return asked;
  }

  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, profile_, status);
  }

  ExitCode Answer(const Session& session, const v1::StartJobRequest& asked,
                  const google::protobuf::Message& reply) const override {
    const auto& response = static_cast<const v1::PredictThroughputResponse&>(reply);
    const ThroughputPlot plot =
        PlotOf(PlotTitle(asked.predict_throughput()), response.predictions());
    const ExitCode code = session.Answer(ToJson(response), [&] {
      return PredictionTable(response.predictions()) +
             (passes_ ? PassesText(response.predictions()) : "") +
             (series_points_.has_value() ? OverTimeText(response.predictions()) : "") +
             plot_.Text(session, plot);
    });
    return code == ExitCode::kDone ? plot_.Save(session, plot) : code;
  }

 private:
  std::vector<int32_t> Counts() const {
    if (!counts_.empty()) return counts_;
    const std::optional<int64_t> grouped = scenario_.GroupedWorkers();
    if (!grouped) return scenario_.DefaultCounts();
    // A sum out of bounds, the service refuses.
    return {static_cast<int32_t>(std::clamp<int64_t>(*grouped, INT32_MIN, INT32_MAX))};
  }

  std::string profile_;
  std::vector<int32_t> counts_;
  ScenarioFlags scenario_;
  PlanFlags plan_;
  SimulationFlags simulation_;
  PlotFlag plot_;
  bool passes_ = false;
  std::optional<int32_t> series_points_;
};

}  // namespace

std::unique_ptr<Question> MakePredictQuestion() { return std::make_unique<PredictQuestion>(); }

}  // namespace stepcast::client
