#include "client/cli/recommend_command.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/parsed_option.h"
#include "client/cli/prediction_table.h"
#include "client/cli/profile_argument.h"
#include "client/cli/progress.h"
#include "client/cli/scenario_flags.h"
#include "client/cli/simulation_flags.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

absl::StatusOr<Objective> ParseObjective(const std::string& text) {
  if (text == "knee") return Objective::kKnee;
  if (text == "max-throughput") return Objective::kMaxThroughput;
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is none of knee, max-throughput"));
}

class RecommendCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand("recommend", "How many workers the job should get, with the whole curve");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->required()->type_name("");
    AddParsedOption(*app, "--objective", "knee|max-throughput",
                    "knee: the highest throughput times efficiency (default); max-throughput: the fewest workers that reach the highest throughput",
                    ParseObjective, [this](Objective objective) { objective_ = objective; });
    app->add_option("--min-workers", constraints_.min_workers, "At least so many (default 1)")->type_name("N");
    app->add_option("--max-workers", constraints_.max_workers, "At most so many (default 16, or --min-workers + 15 where that is more)")
        ->type_name("N");
    app->add_option("--min-efficiency", constraints_.min_scaling_efficiency, "Least scaling efficiency, 0 to 1")->type_name("SHARE");
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kForbidden);
    simulation_.Declare(*app);
    return app;
  }

  ExitCode Run(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return ReportProfileFailure(session, profile_, source.status());
    scenario_.Explain(session);
    const RecommendWorkersRequest request{.source = *std::move(source),
                                          .scenario = scenario_.scenario(),
                                          .options = simulation_.options(),
                                          .objective = objective_,
                                          .constraints = constraints_};
    const absl::StatusOr<RecommendWorkersResponse> response = [&] {
      const Progress progress(session.console, "trying numbers of workers");
      return session.client.RecommendWorkers(request);
    }();
    if (!response.ok()) return ReportProfileFailure(session, profile_, response.status());
    return session.Answer(ToJson(*response), [&] { return RecommendationText(*response); });
  }

 private:
  std::string profile_;
  Objective objective_ = Objective::kUnspecified;
  Constraints constraints_;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

}  // namespace

std::unique_ptr<Command> MakeRecommendCommand() { return std::make_unique<RecommendCommand>(); }

}  // namespace stepcast::client
