#include "client/cli/allocate_question.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/cli/allocation_table.h"
#include "client/cli/parsed_option.h"
#include "client/cli/profile_argument.h"
#include "client/cli/simulation_flags.h"

#include "stepcast/json.h"
#include "stepcast/profile_encoding.h"

namespace stepcast::client {

namespace {

absl::StatusOr<AllocationObjective> ParseAllocationObjective(const std::string& text) {
  if (text == "total-utility") return AllocationObjective::kTotalUtility;
  if (text == "max-min-fair") return AllocationObjective::kMaxMinFair;
  if (text == "min-makespan") return AllocationObjective::kMinMakespan;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is none of total-utility, max-min-fair, min-makespan"));
}

class AllocateQuestion : public Question {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app =
        parent.add_subcommand("allocate", "How a cluster's workers are shared between jobs");
    app->add_option("JOBS", path_,
                    "A file with the request as proto JSON: {\"jobs\": [{\"id\": ..., \"profile\": "
                    "..., \"weight\": ...,\n"
                    "\"minWorkers\": ..., \"maxWorkers\": ..., \"gang\": ..., "
                    "\"remainingExamples\": ...}], \"capacity\": {\"workers\": ...}}.\n"
                    "A job's `profile` is a file, or the name of a stored profile")
        ->required()
        ->type_name("FILE");
    app->add_option("--workers", workers_, "Workers to share (default: the file's capacity)")
        ->type_name("N");
    app->add_option("--parameter-servers", servers_,
                    "Parameter servers to share (default: the file's, else as many as wanted)")
        ->type_name("N");
    AddParsedOption(*app, "--objective", "total-utility|max-min-fair|min-makespan",
                    "total-utility: the highest sum of weight x speed-up (default); max-min-fair: "
                    "the highest least speed-up / weight; min-makespan: the "
                    "earliest end of the last job",
                    ParseAllocationObjective,
                    [this](AllocationObjective objective) { objective_ = objective; });
    simulation_.Declare(*app);
    return app;
  }

  // What cannot be read needs none to be refused. A pipe could be read only once: it is taken to
  // name stored profiles.
  bool NeedsNoServer() const override {
    std::error_code error;
    if (IsFile(path_) && !std::filesystem::is_regular_file(path_, error)) return false;
    const absl::StatusOr<std::string> text = ReadFile(path_);
    const absl::StatusOr<AllocateWorkersRequest> request =
        text.ok() ? ParseAllocateWorkersRequest(*text)
                  : absl::StatusOr<AllocateWorkersRequest>(text.status());
    return !request.ok() ||
           std::all_of(request->jobs.begin(), request->jobs.end(), [](const AllocationJob& job) {
             const std::string* name = std::get_if<std::string>(&job.source);
             return name == nullptr || name->empty() || IsFile(*name);
           });
  }

  std::string Activity() const override { return "allocating"; }

  absl::StatusOr<JobComputation> Ask(const Session& session) const override {
    const absl::StatusOr<std::string> text = ReadFile(path_);
    if (!text.ok()) return text.status();
    absl::StatusOr<AllocateWorkersRequest> request = ParseAllocateWorkersRequest(*text);
    if (!request.ok()) return request.status();
    for (AllocationJob& job : request->jobs) {
      const std::string* name = std::get_if<std::string>(&job.source);
      if (name == nullptr || name->empty()) continue;
      absl::StatusOr<ProfileSource> source = ProfileFromArgument(session, *name);
      if (!source.ok()) return source.status();
      job.source = *std::move(source);
    }
    ApplyFlags(*request);
    return *std::move(request);
  }

  // A message that is too large has many profiles, of which none is the one to store.
  ExitCode Report(const Session& session, const absl::Status& status) const override {
    return ReportProfileFailure(session, "", status);
  }

  ExitCode Answer(const Session& session, const JobComputation&,
                  const JobReply& reply) const override {
    const auto& response = std::get<AllocateWorkersResponse>(reply);
    return session.Answer(ToJson(response), [&] { return AllocationText(response); });
  }

 private:
  void ApplyFlags(AllocateWorkersRequest& request) const {
    if (workers_ || servers_) {
      ClusterCapacity capacity = request.capacity.value_or(ClusterCapacity{});
      if (workers_) capacity.workers = *workers_;
      if (servers_) capacity.parameter_servers = servers_;
      request.capacity = capacity;
    }
    if (objective_ != AllocationObjective::kUnspecified) request.objective = objective_;
    if (simulation_.options() != SimulationOptions{}) request.options = simulation_.options();
  }

  std::string path_;
  std::optional<int32_t> workers_;
  std::optional<int32_t> servers_;
  AllocationObjective objective_ = AllocationObjective::kUnspecified;
  SimulationFlags simulation_;
};

}  // namespace

std::unique_ptr<Question> MakeAllocateQuestion() { return std::make_unique<AllocateQuestion>(); }

}  // namespace stepcast::client
