#include "client/cli/compare_command.h"

#include <string>
#include <utility>
#include <vector>

#include "client/cli/comparison_table.h"
#include "client/cli/parsed_option.h"
#include "client/cli/profile_argument.h"
#include "client/cli/progress.h"
#include "client/cli/scenario_flags.h"
#include "client/cli/simulation_flags.h"
#include "client/cli/worker_list.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

class CompareCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand("compare", "What simpler models of asynchronous training predict, beside the simulation");
    app->add_option("PROFILE", profile_, kProfileArgumentHelp)->required()->type_name("");
    AddParsedOption(
        *app, "--workers", "LIST", "Numbers of workers: 1-16 or 1,2,4 (default 1-8)", [](const std::string& text) { return ParseWorkerList(text); },
        [this](std::vector<int32_t> counts) { counts_ = std::move(counts); });
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kForbidden);
    simulation_.Declare(*app);
    return app;
  }

  ExitCode Run(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return ReportProfileFailure(session, profile_, source.status());
    scenario_.Explain(session);
    const CompareModelsRequest request{
        .source = *std::move(source), .worker_counts = counts_, .scenario = scenario_.scenario(), .options = simulation_.options()};
    const absl::StatusOr<CompareModelsResponse> response = [&] {
      const Progress progress(session.console, "comparing");
      return session.client.CompareModels(request);
    }();
    if (!response.ok()) return ReportProfileFailure(session, profile_, response.status());
    return session.Answer(ToJson(*response), [&] { return ComparisonText(*response); });
  }

 private:
  std::string profile_;
  std::vector<int32_t> counts_;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

}  // namespace

std::unique_ptr<Command> MakeCompareCommand() { return std::make_unique<CompareCommand>(); }

}  // namespace stepcast::client
