// `recommend`: how many workers, and servers, the job should get.
#include <CLI/App.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/flags/simulation_flags.h"
#include "client/cli/plots/throughput_plot.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/prediction_table.h"
#include "client/cli/texts/table.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

class RecommendQuestion : public Question {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app =
        parent.add_subcommand("recommend", "How many workers, and servers, the job should get");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->required()->type_name("");
    recommend_.Declare(*app);
    recommend_.DeclareList(*app);
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByUser,
                      ScenarioFlags::Offsets::kForbidden);
    simulation_.Declare(*app);
    plot_.Declare(*app);
    return app;
  }

  bool NeedsNoServer() const override { return IsFile(profile_); }

  std::string Activity() const override { return "trying numbers of workers"; }

  ExitCode Check(const Session& session) const override { return plot_.Check(session); }

  std::string_view AnswerFlag() const override { return plot_.given() ? "--plot" : ""; }

  absl::StatusOr<v1::StartJobRequest> Ask(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return source.status();
    scenario_.Explain(session);
    v1::StartJobRequest asked;
    v1::RecommendWorkersRequest& request = *asked.mutable_recommend_workers();
    request = recommend_.request();
    SetSource(*std::move(source), request);
    *request.mutable_scenario() = scenario_.scenario();
    *request.mutable_options() = simulation_.options();
    return asked;
  }

  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, profile_, status);
  }

  ExitCode Answer(const Session& session, const v1::StartJobRequest& asked,
                  const google::protobuf::Message& reply) const override {
    const auto& response = static_cast<const v1::RecommendWorkersResponse&>(reply);
    const ThroughputPlot plot = PlotOf(PlotTitle(asked.recommend_workers()), response);
    const ExitCode code = session.Answer(
        ToJson(response), [&] { return RecommendationText(response) + plot_.Text(session, plot); });
    return code == ExitCode::kDone ? plot_.Save(session, plot) : code;
  }

 private:
  std::string profile_;
  RecommendFlags recommend_;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
  PlotFlag plot_;
};

// Workers and servers.
using Choice = std::pair<int32_t, int32_t>;

Choice ChoiceOf(const v1::Prediction& prediction) {
  return {WorkersOf(prediction), ServersOf(prediction)};
}

// The columns that there is anything to write in.
struct Columns {
  bool servers = false;
  bool durations = false;
  bool costs = false;
  bool broken = false;
};

Columns ColumnsFor(const v1::RecommendWorkersResponse& response) {
  Columns columns;
  for (const v1::Prediction& prediction : response.frontier())
    columns.servers |= ServersOf(prediction) != ServersOf(response.frontier(0));
  for (const v1::FrontierOutcome& outcome : response.frontier_outcomes()) {
    columns.durations |= outcome.has_duration();
    columns.costs |= outcome.has_cost();
    columns.broken |= !outcome.broken_constraints().empty();
  }
  return columns;
}

const char* NameOf(v1::BrokenConstraint::Kind kind) {
  switch (kind) {
    case v1::BrokenConstraint::DEADLINE:
      return "deadline";
    case v1::BrokenConstraint::BUDGET:
      return "budget";
    case v1::BrokenConstraint::MIN_SCALING_EFFICIENCY:
      return "efficiency";
    default:
      return "a constraint";
  }
}

std::string BrokenText(const v1::FrontierOutcome& outcome) {
  std::string text;
  for (const v1::BrokenConstraint& broken : outcome.broken_constraints()) {
    constexpr double kTen = 10;  // from so many times as much as allowed percent are hard to read
    const double missed_by = broken.missed_by();
    absl::StrAppend(&text, text.empty() ? "" : ", ", NameOf(broken.kind()), " by ",
                    missed_by < kTen ? PercentText(missed_by) : NumberText(missed_by) + " times");
  }
  return text;
}

std::string MarkOf(const v1::RecommendWorkersResponse& response, const Choice& choice) {
  const v1::NearestChoice& nearest = response.nearest();
  const Choice best = response.has_nearest()
                          ? Choice{nearest.workers(), nearest.parameter_servers()}
                          : Choice{response.workers(), response.parameter_servers()};
  if (choice == best) return "->";
  const auto is_it = [&](const v1::Tie& tie) {
    return Choice{tie.workers(), tie.parameter_servers()} == choice;
  };
  return std::any_of(response.ties().begin(), response.ties().end(), is_it) ? "=" : "";
}

Table EmptyTable(const v1::RecommendWorkersResponse& response, const Columns& columns) {
  constexpr auto kLeft = Table::Align::kLeft;
  std::vector<Table::Column> titles{{"", kLeft}, {"workers"}};
  if (columns.servers) titles.push_back({"servers"});
  for (const std::string& title :
       {std::string("examples/s"), IntervalTitle(response.frontier()),
        RunsTitle(response.frontier()), std::string("speed-up"), std::string("efficiency")}) {
    if (!title.empty()) titles.push_back({title});
  }
  if (columns.durations) titles.push_back({"time"});
  if (columns.costs) {
    titles.push_back({response.currency_code().empty()
                          ? "cost"
                          : absl::StrCat("cost, ", response.currency_code())});
  }
  titles.push_back({"step p50"});
  titles.push_back({"bottleneck", kLeft});
  if (columns.broken) titles.push_back({"misses", kLeft});
  return Table(std::move(titles));
}

// True where it was tried with less than a prediction of it is made with.
bool IsRough(const v1::RecommendWorkersResponse& response, int i) {
  return i < response.frontier_outcomes_size() && !response.frontier_outcomes(i).in_full();
}

std::vector<std::string> RowOf(const v1::RecommendWorkersResponse& response, const Columns& columns,
                               int i) {
  const v1::Prediction& prediction = response.frontier(i);
  const v1::FrontierOutcome& outcome = i < response.frontier_outcomes_size()
                                           ? response.frontier_outcomes(i)
                                           : v1::FrontierOutcome::default_instance();
  const Choice choice = ChoiceOf(prediction);
  std::vector<std::string> row{MarkOf(response, choice), absl::StrCat(choice.first)};
  if (columns.servers) row.push_back(absl::StrCat(choice.second));
  row.push_back(
      absl::StrCat(IsRough(response, i) ? "~" : "", NumberText(prediction.examples_per_second())));
  row.push_back(IntervalText(prediction.confidence_interval()));
  if (!RunsTitle(response.frontier()).empty())
    row.push_back(IntervalText(prediction.run_interval()));
  row.push_back(NumberText(prediction.speedup()));
  row.push_back(PercentText(prediction.scaling_efficiency()));
  if (columns.durations)
    row.push_back(outcome.has_duration() ? DurationText(outcome.duration()) : "never");
  if (columns.costs) row.push_back(outcome.has_cost() ? NumberText(outcome.cost()) : "");
  row.push_back(DurationText(prediction.step_time().p50()));
  row.push_back(BottleneckText(prediction));
  if (columns.broken) row.push_back(BrokenText(outcome));
  return row;
}

std::string Legend(const v1::RecommendWorkersResponse& response) {
  std::string text;
  if (!response.ties().empty())
    absl::StrAppend(&text, "= is as good within the intervals, and to 2 %.\n");
  if (response.has_nearest()) absl::StrAppend(&text, "-> comes nearest to the constraints.\n");
  bool any_rough = false;
  for (int i = 0; i < response.frontier_size(); ++i) any_rough |= IsRough(response, i);
  if (any_rough)
    absl::StrAppend(&text,
                    "~ was simulated with fewer replications and one start only, since it is "
                    "clearly worse: predict says more.\n");
  if (response.choices() > response.frontier_size()) {
    absl::StrAppend(
        &text, response.frontier_size(), " of ", response.choices(),
        " choices were simulated: by the links, the processors or the curve the others cannot win");
    if (!response.has_nearest() && response.untried_gain_bound() > 0) {
      absl::StrAppend(&text, " (links and processors alone would leave room for ",
                      PercentText(response.untried_gain_bound()), ")");
    }
    absl::StrAppend(&text, ".\n");
  }
  return text;
}

}  // namespace

std::string RecommendationText(const v1::RecommendWorkersResponse& response) {
  const Columns columns = ColumnsFor(response);
  Table table = EmptyTable(response, columns);
  for (int i = 0; i < response.frontier_size(); ++i) table.AddRow(RowOf(response, columns, i));
  const std::string first = response.workers() > 0
                                ? response.reason()
                                : absl::StrCat("No recommendation: ", response.infeasible_reason());
  const std::string close =
      response.workers() > 0 ? CloseCallText(response.probability_best(), response.expected_loss())
                             : "";
  Predictions chosen;
  if (response.workers() > 0) *chosen.Add() = response.prediction();
  return absl::StrCat(first, "\n\n", table.Text(), Legend(response), close, ForecastText(chosen),
                      MemoryText(chosen), AssumptionsText(response.frontier()),
                      WarningsText(response.frontier()));
}

std::unique_ptr<Question> MakeRecommendQuestion() { return std::make_unique<RecommendQuestion>(); }

}  // namespace stepcast::client
