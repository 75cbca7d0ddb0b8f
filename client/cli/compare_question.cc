#include "client/cli/compare_question.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/cli/comparison_table.h"
#include "client/cli/parsed_option.h"
#include "client/cli/profile_argument.h"
#include "client/cli/scenario_flags.h"
#include "client/cli/simulation_flags.h"
#include "client/cli/worker_list.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

class CompareQuestion : public Question {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "compare", "What simpler models of asynchronous training predict, beside the simulation");
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

  absl::StatusOr<JobComputation> Ask(const Session& session) const override {
    absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile_);
    if (!source.ok()) return source.status();
    scenario_.Explain(session);
    return CompareModelsRequest{.source = *std::move(source),
                                .worker_counts = counts_,
                                .scenario = scenario_.scenario(),
                                .options = simulation_.options()};
  }

  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, profile_, status);
  }

  ExitCode Answer(const Session& session, const JobComputation&,
                  const JobReply& reply) const override {
    const auto& response = std::get<CompareModelsResponse>(reply);
    return session.Answer(ToJson(response), [&] { return ComparisonText(response); });
  }

 private:
  std::string profile_;
  std::vector<int32_t> counts_;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

}  // namespace

std::unique_ptr<Question> MakeCompareQuestion() { return std::make_unique<CompareQuestion>(); }

}  // namespace stepcast::client
