#include "client/cli/recommend_question.h"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/cli/parsed_option.h"
#include "client/cli/plot_flag.h"
#include "client/cli/profile_argument.h"
#include "client/cli/quantity.h"
#include "client/cli/recommendation_table.h"
#include "client/cli/scenario_flags.h"
#include "client/cli/simulation_flags.h"
#include "client/cli/throughput_plot.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

absl::StatusOr<Objective> ParseObjective(const std::string& text) {
  if (text == "knee") return Objective::kKnee;
  if (text == "max-throughput") return Objective::kMaxThroughput;
  if (text == "min-cost") return Objective::kMinCost;
  if (text == "min-time") return Objective::kMinTime;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is none of knee, max-throughput, min-cost, min-time"));
}

class RecommendQuestion : public Question {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app =
        parent.add_subcommand("recommend", "How many workers, and servers, the job should get");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->required()->type_name("");
    AddParsedOption(*app, "--objective", "knee|max-throughput|min-cost|min-time",
                    "knee: the highest throughput times efficiency (default); max-throughput; "
                    "min-cost: of the remaining examples, or of one; min-time",
                    ParseObjective, [this](Objective objective) { objective_ = objective; });
    DeclareConstraints(*app);
    DeclarePrices(*app);
    DeclareCurrent(*app);
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

  absl::StatusOr<JobComputation> Ask(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return source.status();
    scenario_.Explain(session);
    return RecommendWorkersRequest{.source = *std::move(source),
                                   .scenario = scenario_.scenario(),
                                   .options = simulation_.options(),
                                   .objective = objective_,
                                   .constraints = constraints_,
                                   .prices = prices_,
                                   .current = current_};
  }

  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, profile_, status);
  }

  ExitCode Answer(const Session& session, const JobComputation& asked,
                  const JobReply& reply) const override {
    const auto& response = std::get<RecommendWorkersResponse>(reply);
    const ThroughputPlot plot =
        PlotOf(PlotTitle(std::get<RecommendWorkersRequest>(asked).source), response);
    const ExitCode code = session.Answer(
        ToJson(response), [&] { return RecommendationText(response) + plot_.Text(session, plot); });
    return code == ExitCode::kDone ? plot_.Save(session, plot) : code;
  }

 private:
  void DeclareConstraints(CLI::App& app) {
    app.add_option("--min-workers", constraints_.min_workers, "At least so many (default 1)")
        ->type_name("N");
    app.add_option("--max-workers", constraints_.max_workers,
                   "At most so many (default 16, or --min-workers + 15 where that is more)")
        ->type_name("N");
    app.add_option("--max-servers", constraints_.max_parameter_servers,
                   "Choose among 1 to so many servers, too (default: only the scenario's)")
        ->type_name("N");
    app.add_option("--min-efficiency", constraints_.min_scaling_efficiency,
                   "Least scaling efficiency, 0 to 1")
        ->type_name("SHARE");
    app.add_option("--examples", constraints_.examples,
                   "Examples left to train on: gives time and, with prices, cost")
        ->type_name("N");
    AddParsedOption(
        app, "--deadline", "TIME",
        "The examples must be done within this: 30m, 8h; needs --examples",
        [](const std::string& text) { return ParseDuration(text); },
        [this](std::chrono::nanoseconds time) { constraints_.deadline = time; });
    app.add_option("--budget", constraints_.budget,
                   "The most the examples may cost; needs --examples and prices")
        ->type_name("AMOUNT");
  }

  // Prices are sent where one was given.
  void DeclarePrices(CLI::App& app) {
    const auto price = [this, &app](const char* name, const char* help, double Prices::*field) {
      app.add_option_function<double>(
             name,
             [this, field](const double& amount) {
               if (!prices_) prices_.emplace();
               (*prices_).*field = amount;
             },
             help)
          ->type_name("AMOUNT");
    };
    price("--worker-hour", "What a worker costs an hour", &Prices::worker_hour);
    price("--server-hour", "What a parameter server costs an hour", &Prices::parameter_server_hour);
    app.add_option_function<std::string>(
           "--currency",
           [this](const std::string& code) {
             if (!prices_) prices_.emplace();
             prices_->currency_code = code;
           },
           "What the prices are in, for instance USD")
        ->type_name("CODE");
  }

  void DeclareCurrent(CLI::App& app) {
    CLI::Option* workers = app.add_option_function<int32_t>(
        "--current-workers",
        [this](const int32_t& count) {
          if (!current_) current_.emplace();
          current_->workers = count;
        },
        "The job runs already, with so many: it is not moved for less than that costs, given "
        "--examples");
    workers->type_name("N");
    app.add_option_function<int32_t>(
           "--current-servers",
           [this](const int32_t& count) {
             if (!current_) current_.emplace();
             current_->parameter_servers = count;
           },
           "... and so many servers (default: the scenario's)")
        ->type_name("N")
        ->needs(workers);
    AddParsedOption(
        app, "--rescale-time", "TIME",
        "How long the running job stands still when its numbers change: 90s",
        [](const std::string& text) { return ParseDuration(text); },
        [this](std::chrono::nanoseconds time) {
          if (!current_) current_.emplace();
          current_->rescale_seconds = std::chrono::duration<double>(time).count();
        })
        ->needs(workers);
  }

  std::string profile_;
  Objective objective_ = Objective::kUnspecified;
  Constraints constraints_;
  std::optional<Prices> prices_;
  std::optional<CurrentAllocation> current_;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
  PlotFlag plot_;
};

}  // namespace

std::unique_ptr<Question> MakeRecommendQuestion() { return std::make_unique<RecommendQuestion>(); }

}  // namespace stepcast::client
