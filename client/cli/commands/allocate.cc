// `allocate`: how a cluster's workers are shared between jobs.
#include <CLI/App.hpp>
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/flags/simulation_flags.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/flag_names.h"
#include "client/cli/texts/prediction_table.h"
#include "client/cli/texts/table.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

const Choices<v1::AllocateWorkersRequest::Objective> kAllocationObjectives{
    {"total-utility", v1::AllocateWorkersRequest::TOTAL_UTILITY},
    {"max-min-fair", v1::AllocateWorkersRequest::MAX_MIN_FAIR},
    {"min-makespan", v1::AllocateWorkersRequest::MIN_MAKESPAN}};

class AllocateQuestion : public Question {
 public:
  using Objective = v1::AllocateWorkersRequest::Objective;

  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app =
        parent.add_subcommand("allocate", "How a cluster's workers are shared between jobs");
    app->add_option(
           "JOBS", path_,
           "A file with the request as proto JSON: {\"jobs\": [{\"id\": ..., \"profile\": "
           "..., \"weight\": ...,\n"
           "\"minWorkers\": ..., \"maxWorkers\": ..., \"gang\": ..., "
           "\"remainingExamples\": ...}], \"capacity\": {\"workers\": ...}}.\n"
           "A job's `profile` is a file, or the name of a stored profile; -: standard input")
        ->required()
        ->type_name("FILE");
    app->add_option("--workers", workers_, "Workers to share (default: the file's capacity)")
        ->type_name("N");
    app->add_option("--devices", devices_,
                    "Devices to share, in place of workers: a worker takes the stages of its "
                    "pipeline x the devices of its profile's worker")
        ->type_name("N")
        ->excludes("--workers");
    app->add_option("--parameter-servers", servers_,
                    "Parameter servers to share (default: the file's, else as many as wanted)")
        ->type_name("N");
    AddChoiceOption(*app, "--objective", kAllocationObjectives,
                    "total-utility: the highest sum of weight x speed-up (default); max-min-fair: "
                    "the highest least speed-up / weight; min-makespan: the "
                    "earliest end of the last job",
                    [this](Objective objective) { objective_ = objective; });
    simulation_.Declare(*app);
    return app;
  }

  // A file that cannot be read needs none to be refused.
  bool NeedsNoServer() const override {
    const absl::StatusOr<v1::AllocateWorkersRequest>& request = Read();
    return !request.ok() || std::all_of(request->jobs().begin(), request->jobs().end(),
                                        [](const v1::AllocationJob& job) {
                                          return job.profile().empty() || IsFile(job.profile());
                                        });
  }

  std::string Activity() const override { return "allocating"; }

  absl::StatusOr<v1::StartJobRequest> Ask(const Session& session) const override {
    absl::StatusOr<v1::AllocateWorkersRequest> request = Read();
    if (!request.ok()) return request.status();
    const auto from_standard_input =
        std::count_if(request->jobs().begin(), request->jobs().end(),
                      [](const v1::AllocationJob& job) { return job.profile() == kStandardInput; });
    if (from_standard_input + (path_ == kStandardInput ? 1 : 0) > 1)
      return absl::InvalidArgumentError("standard input (-) is read once, and is named twice");
    for (v1::AllocationJob& job : *request->mutable_jobs()) {
      if (job.profile().empty()) continue;
      absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, job.profile());
      if (!source.ok()) return source.status();
      SetSource(*std::move(source), job);
    }
    ApplyFlags(*request);
    v1::StartJobRequest asked;
    *asked.mutable_allocate_workers() = *std::move(request);
    return asked;
  }

  // A message that is too large has many profiles, of which none is the one to store.
  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, "", status);
  }

  ExitCode Answer(const Session& session, const v1::StartJobRequest&,
                  const google::protobuf::Message& reply) const override {
    const auto& response = static_cast<const v1::AllocateWorkersResponse&>(reply);
    return session.Answer(ToJson(response), [&] { return AllocationText(response); });
  }

 private:
  // Once: a pipe cannot be read again.
  const absl::StatusOr<v1::AllocateWorkersRequest>& Read() const {
    if (read_.has_value()) return *read_;
    read_.emplace(v1::AllocateWorkersRequest());
    const absl::StatusOr<std::string> text = ReadTextInput(path_, "jobs as JSON");
    const absl::Status status = text.ok() ? InFile(path_, FromJson(*text, **read_)) : text.status();
    if (!status.ok()) *read_ = status;
    return *read_;
  }

  void ApplyFlags(v1::AllocateWorkersRequest& request) const {
    if (workers_) {
      request.mutable_capacity()->clear_devices();
      request.mutable_capacity()->set_workers(*workers_);
    }
    if (devices_) {
      request.mutable_capacity()->clear_workers();
      request.mutable_capacity()->set_devices(*devices_);
    }
    if (servers_) request.mutable_capacity()->set_parameter_servers(*servers_);
    if (objective_ != v1::AllocateWorkersRequest::OBJECTIVE_UNSPECIFIED)
      request.set_objective(objective_);
    if (simulation_.options().ByteSizeLong() > 0)
      *request.mutable_options() = simulation_.options();
  }

  std::string path_;
  mutable std::optional<absl::StatusOr<v1::AllocateWorkersRequest>> read_;
  std::optional<int32_t> workers_;
  std::optional<int32_t> servers_;
  std::optional<int32_t> devices_;
  Objective objective_ = v1::AllocateWorkersRequest::OBJECTIVE_UNSPECIFIED;
  SimulationFlags simulation_;
};

std::vector<std::string> AllocationRow(const v1::JobAllocation& job) {
  if (job.has_error()) return {job.id(), "-", "-", "-", "-", "-", "-"};
  return {job.id(),
          absl::StrCat(job.workers()),
          absl::StrCat(job.parameter_servers()),
          absl::StrCat(job.interpolated() ? "~" : "", NumberText(job.examples_per_second())),
          NumberText(job.speedup()),
          NumberText(job.utility()),
          job.has_duration() ? DurationText(job.duration()) : "-"};
}

bool HasItsMost(const v1::JobAllocation& job) {
  return job.workers_edge() == v1::AT_LARGEST_ASKED || job.workers_edge() == v1::ONLY_CHOICE;
}

// The jobs that their own bounds keep from more.
std::string EdgeTexts(const v1::AllocateWorkersResponse& response) {
  std::string text;
  for (const v1::JobAllocation& job : response.allocations()) {
    if (!HasItsMost(job)) continue;
    absl::StrAppend(&text, job.id(), " has ", job.workers(),
                    job.workers_edge() == v1::ONLY_CHOICE ? ", the only number that it may get\n"
                                                          : ", the most that it may get\n");
  }
  return text;
}

std::string DevicesOfText(const v1::OneMoreWorker& more) {
  return more.devices() > 1 ? absl::StrCat(" of ", more.devices(), " devices") : "";
}

std::string OneMoreText(const v1::AllocateWorkersResponse& response) {
  const v1::OneMoreWorker& more = response.one_more_worker();
  if (more.changes().empty()) {
    const auto& jobs = response.allocations();
    const bool no_job_may = std::any_of(jobs.begin(), jobs.end(), HasItsMost) &&
                            std::all_of(jobs.begin(), jobs.end(), [](const auto& job) {
                              return job.has_error() || HasItsMost(job);
                            });
    return no_job_may ? "one more worker would be of no use: no job may get more (maxWorkers)\n"
                      : "one more worker would be of no use\n";
  }
  const auto change = [](std::string* out, const v1::AllocationChange& one) {
    absl::StrAppend(out, one.id(), " would have ", one.workers(),
                    one.workers() == 1 ? " worker" : " workers");
  };
  // The objective may be another than utility: the least share, or seconds until the last ends.
  const bool by_utility =
      std::abs(more.objective_gain() - more.utility_gain()) <= 1e-9 * std::abs(more.utility_gain());
  return absl::StrCat("one more worker", DevicesOfText(more),
                      by_utility ? " would add " : " would change the objective by ",
                      by_utility ? "" : NumberText(more.objective_gain()) + ", and utility by ",
                      NumberText(more.utility_gain()), by_utility ? " of utility: " : ": ",
                      absl::StrJoin(more.changes(), ", ", change), "\n");
}

}  // namespace

std::string AllocationText(const v1::AllocateWorkersResponse& response) {
  using Align = Table::Align;
  Table table({{"job", Align::kLeft},
               {"workers"},
               {"servers"},
               {"examples/s"},
               {"speed-up"},
               {"utility"},
               {"time left"}});
  std::string errors;
  std::string warnings;
  for (const v1::JobAllocation& job : response.allocations()) {
    table.AddRow(AllocationRow(job));
    for (const absl::string_view told :
         absl::StrSplit(AssumptionsText(job.assumptions()), '\n', absl::SkipEmpty()))
      absl::StrAppend(&warnings, job.id(), ": ", told, "\n");
    for (const v1::Warning& warning : job.warnings())
      absl::StrAppend(&warnings, "warning (", job.id(), "): ", WithFlags(warning.message()), "\n");
    if (job.has_error())
      absl::StrAppend(&errors, "error (", job.id(), "): ", job.error().message(), "\n");
  }
  if (!response.infeasible_reason().empty())
    return absl::StrCat("No allocation: ", response.infeasible_reason(), "\n", errors);
  const bool has_devices = response.devices() > response.workers();
  return absl::StrCat(table.Text(), "total: ", response.workers(), " workers",
                      has_devices ? absl::StrCat(" of ", response.devices(), " devices") : "", ", ",
                      response.parameter_servers(), " servers, utility ",
                      NumberText(response.total_utility()), "\n",
                      response.has_probability_best()
                          ? CloseCallText(response.probability_best(), response.expected_loss())
                          : "",
                      EdgeTexts(response), OneMoreText(response), warnings, errors);
}

std::unique_ptr<Question> MakeAllocateQuestion() { return std::make_unique<AllocateQuestion>(); }

}  // namespace stepcast::client
