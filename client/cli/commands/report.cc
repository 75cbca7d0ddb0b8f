// `report`: a page on a job, or on two, to look at.
#include "server/report/report.h"

#include <CLI/App.hpp>
#include <CLI/Error.hpp>
#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/flags/scenario_flags.h"
#include "client/cli/flags/simulation_flags.h"
#include "client/cli/texts/progress.h"

namespace stepcast::client {

namespace {

constexpr char kPageToStandardOutput[] = "-";
constexpr int32_t kDefaultMaxWorkers = 16;
constexpr int32_t kMaxWorkers = 4096;  // of the service

// The answers of the session's client.
class ClientSource final : public server::ReportSource {
 public:
  explicit ClientSource(const Client& client) : client_(client) {}

  absl::StatusOr<v1::Profile> GetProfile(const v1::GetProfileRequest& request) override {
    return client_.GetProfile(request);
  }
  absl::StatusOr<v1::PredictThroughputResponse> PredictThroughput(
      const v1::PredictThroughputRequest& request) override {
    return client_.PredictThroughput(request);
  }
  absl::StatusOr<v1::RecommendWorkersResponse> RecommendWorkers(
      const v1::RecommendWorkersRequest& request) override {
    return client_.RecommendWorkers(request);
  }
  absl::StatusOr<v1::OptimizeOrderResponse> OptimizeOrder(
      const v1::OptimizeOrderRequest& request) override {
    return client_.OptimizeOrder(request);
  }
  absl::StatusOr<v1::OptimizeCommunicationResponse> OptimizeCommunication(
      const v1::OptimizeCommunicationRequest& request) override {
    return client_.OptimizeCommunication(request);
  }
  absl::StatusOr<v1::CompareModelsResponse> CompareModels(
      const v1::CompareModelsRequest& request) override {
    return client_.CompareModels(request);
  }
  absl::StatusOr<v1::DiagnoseJobResponse> DiagnoseJob(
      const v1::DiagnoseJobRequest& request) override {
    return client_.DiagnoseJob(request);
  }
  absl::Status GenerateTrace(const v1::GenerateTraceRequest& request,
                             const std::function<absl::Status(std::string_view)>& take) override {
    return client_.GenerateTrace(request, take);
  }

 private:
  const Client& client_;
};

// Another scenario for the same profile, as flags in one argument.
struct OtherScenario {
  std::string flags;
  v1::Scenario scenario;
  TypedFlags typed;
};

// Failure: INVALID_ARGUMENT, with what is wrong with the flags.
absl::StatusOr<OtherScenario> ParseOther(const std::string& flags) {
  CLI::App app;
  app.set_help_flag();
  ScenarioFlags scenario;
  scenario.Declare(app, ScenarioFlags::Order::kChosenByUser, ScenarioFlags::Offsets::kForbidden);
  try {
    app.parse(flags);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat("\"", flags, "\": ", error.what()));
  }
  return OtherScenario{.flags = flags, .scenario = scenario.scenario(), .typed = TypedIn(app)};
}

// The command of `app` as it was parsed: with the words that were typed, but none that say where
// the page goes or who asks.
std::string CommandOf(const CLI::App& app, const Session& session) {
  std::string command = absl::StrCat("stepcast ", app.get_name());
  const auto add = [&](std::string_view word) {
    absl::StrAppend(&command, " ", server::ShellWord(word));
  };
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name(/*positional=*/false, /*all_options=*/false);
    if (option->count() == 0 || name == "--out" || name == "--help") continue;
    const bool is_flag = option->get_items_expected_max() == 0;
    for (const std::string& word : option->results()) {
      if (!option->get_positional()) add(name);
      if (!is_flag) add(word);
    }
  }
  if (!session.local) {
    add("--server");
    add(session.options.server);
  }
  return command;
}

class ReportCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "report",
        "A page on a job, to look at and to show: one HTML file that fetches nothing. Of two\n"
        "profiles, a comparison; --output does not apply");
    app->add_option("PROFILE", profiles_, kProfileArgumentHelp)
        ->required()
        ->expected(1, 2)
        ->type_name("");
    app->add_option("--out", out_, "Where the page goes (default report.html; -: standard output)")
        ->type_name("FILE");
    AddParsedOption(
        *app, "--workers", "LIST",
        "Numbers of workers to draw: 1-16 or 1,2,4 (default: those from --min-workers to "
        "--max-workers, 1-16; of more than 64 some)",
        [](const std::string& text) { return ParseWorkerList(text); },
        [this](std::vector<int32_t> counts) { counts_ = std::move(counts); });
    AddParsedOption(
        *app, "--against", "FLAGS",
        "Compare with the same profile in another scenario, which has these flags alone: "
        "\"--bandwidth 10Gbit/s --servers 2\"",
        ParseOther, [this](OtherScenario other) { against_ = {std::move(other)}; });
    recommend_.Declare(*app);
    scenario_.Declare(*app, ScenarioFlags::Order::kChosenByUser,
                      ScenarioFlags::Offsets::kForbidden);
    simulation_.Declare(*app);
    app_ = app;
    return app;
  }

  bool NeedsNoServer() const override {
    return std::all_of(profiles_.begin(), profiles_.end(), IsFile);
  }

  ExitCode Run(const Session& session) const override {
    if (profiles_.size() > 1 && !against_.empty())
      return session.Misused("--against is about one profile");
    server::ReportRequest request{.subjects = {},
                                  .worker_counts = Counts(),
                                  .command = CommandOf(*app_, session),
                                  .made_at_seconds = absl::ToUnixSeconds(absl::Now())};
    for (const std::string& profile : profiles_) {
      absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, profile);
      if (!source.ok()) return ReportProfileFailure(session, profile, source.status());
      server::ReportSubject subject{.label = profiles_.size() > 1 ? profile : "",
                                    .file = IsFile(profile) ? profile : "",
                                    .question = recommend_.request()};
      SetSource(*std::move(source), subject.question);
      *subject.question.mutable_scenario() = scenario_.scenario();
      *subject.question.mutable_options() = simulation_.options();
      request.subjects.push_back(std::move(subject));
    }
    Session told = session;  // with what was typed within --against
    for (const OtherScenario& other : against_) {
      told.typed.insert(told.typed.end(), other.typed.begin(), other.typed.end());
      server::ReportSubject subject = request.subjects.front();
      request.subjects.front().label = "as asked";
      subject.label = other.flags;
      *subject.question.mutable_scenario() = other.scenario;
      request.subjects.push_back(std::move(subject));
    }
    scenario_.Explain(session);
    return Write(told, request);
  }

 private:
  std::vector<int32_t> Counts() const {
    if (!counts_.empty()) return counts_;
    const v1::Constraints bounds = recommend_.request().constraints();
    const int32_t least = std::clamp(bounds.min_workers(), 1, kMaxWorkers);
    const int32_t most = std::clamp(
        bounds.has_max_workers() ? bounds.max_workers() : kDefaultMaxWorkers, least, kMaxWorkers);
    const int32_t node = scenario_.WorkersPerNode();
    std::vector<int32_t> counts;
    for (int32_t count = least; count <= most; ++count) {
      if (node <= 1 || count <= node || count % node == 0) counts.push_back(count);
    }
    if (counts.empty()) return {least};  // the service says why not
    return Thinned(counts);
  }

  // Counts that a curve needs: of many, each so much larger than the one before that few remain.
  static std::vector<int32_t> Thinned(const std::vector<int32_t>& counts) {
    constexpr size_t kMostDrawn = 64;
    constexpr double kFiner = 1.05;
    std::vector<int32_t> few = counts;
    for (double apart = kFiner; few.size() > kMostDrawn; apart *= kFiner) {
      few.clear();
      for (const int32_t count : counts) {
        if (few.empty() || count >= apart * few.back() || count == counts.back())
          few.push_back(count);
      }
    }
    return few;
  }

  ExitCode Write(const Session& session, const server::ReportRequest& request) const {
    ClientSource source(session.client);
    const absl::StatusOr<server::ReportPage> page = [&] {
      const Progress progress(session.console, "writing the report");
      return server::MakeReportPage(source, request);
    }();
    if (!page.ok()) return ReportProfileFailure(session, profiles_.front(), page.status());
    if (out_ == kPageToStandardOutput)
      return session.Answer(page->html, [&] { return page->html; });
    std::ofstream file(out_, std::ios::binary | std::ios::trunc);
    file << page->html << std::flush;
    if (!file.good())
      return session.Refused(absl::DataLossError(absl::StrCat("cannot write ", out_)));
    const std::string said =
        absl::StrCat(page->summary, page->summary.empty() ? "" : "\n", "report: ", out_, "\n");
    return session.Answer(said, [&] { return std::string_view(said); });
  }

  const CLI::App* app_ = nullptr;
  std::vector<std::string> profiles_;
  std::string out_ = "report.html";
  std::vector<int32_t> counts_;
  std::vector<OtherScenario> against_;  // one, or none
  RecommendFlags recommend_;
  ScenarioFlags scenario_;
  SimulationFlags simulation_;
};

}  // namespace

std::unique_ptr<Command> MakeReportCommand() { return std::make_unique<ReportCommand>(); }

}  // namespace stepcast::client
