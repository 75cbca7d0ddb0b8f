#include "client/cli/job_commands.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/characters.h"
#include "client/cli/job_outcome.h"
#include "client/cli/job_table.h"
#include "client/cli/name_argument.h"
#include "client/cli/progress.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

// A command about one job.
class NamedJobCommand : public Command {
 public:
  ExitCode Run(const Session& session) const final {
    if (session.local) return JobsNeedServer(session);
    const std::optional<std::string> name = NameIn("operations/", argument_);
    if (!name)
      return session.Misused(absl::StrCat(InQuotes(argument_), " cannot be the name of a job"));
    return Run(session, *name);
  }

 protected:
  CLI::App* DeclareNamed(CLI::App& parent, const std::string& command, const std::string& about) {
    CLI::App* app = parent.add_subcommand(command, about);
    app->add_option("NAME", argument_, "Its name, with or without `operations/`")
        ->required()
        ->type_name("");
    return app;
  }

 private:
  virtual ExitCode Run(const Session& session, const std::string& name) const = 0;

  std::string argument_;
};

class GetJobCommand : public NamedJobCommand {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    return DeclareNamed(parent, "get", "Show how far a job is, and what came of it");
  }

 private:
  ExitCode Run(const Session& session, const std::string& name) const override {
    const absl::StatusOr<Job> job = [&] {
      const Progress progress(session.console, "reading");
      return session.client.Jobs().Get(name);
    }();
    if (!job.ok()) return session.Refused(job.status());
    const ExitCode code = session.Answer(ToJson(*job), [&] {
      const std::string reply = ReplyText(job->reply);
      return absl::StrCat(JobText(*job), reply.empty() ? "" : "\n", reply);
    });
    return code == ExitCode::kDone ? OutcomeOf(session, *job) : code;
  }
};

class WaitForJobCommand : public NamedJobCommand {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    return DeclareNamed(parent, "wait",
                        "Wait until a job is done, at most --timeout, and print its answer as the "
                        "command does that asks in a call");
  }

 private:
  ExitCode Run(const Session& session, const std::string& name) const override {
    const absl::StatusOr<Job> job = [&] {
      const Progress progress(session.console, "waiting");
      return session.client.Jobs().Wait(name, {.timeout = session.patience});
    }();
    if (!job.ok()) return session.Refused(job.status());
    if (const ExitCode code = OutcomeOf(session, *job); code != ExitCode::kDone) return code;
    return session.Answer(ReplyJson(job->reply), [&] { return ReplyText(job->reply); });
  }
};

class CancelJobCommand : public NamedJobCommand {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    return DeclareNamed(parent, "cancel",
                        "Ask for the end of a job; one that is done stays as it is");
  }

 private:
  ExitCode Run(const Session& session, const std::string& name) const override {
    const absl::Status status = session.client.Jobs().Cancel(name);
    if (!status.ok()) return session.Refused(status);
    // The reply is google.protobuf.Empty.
    return session.Answer("{}\n", [&] { return absl::StrCat("asked to end: ", name, "\n"); });
  }
};

class DeleteJobCommand : public NamedJobCommand {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    return DeclareNamed(parent, "delete", "Forget a job that is done");
  }

 private:
  ExitCode Run(const Session& session, const std::string& name) const override {
    const absl::Status status = session.client.Jobs().Delete(name);
    if (!status.ok()) return session.Refused(status);
    return session.Answer("{}\n", [&] { return absl::StrCat("deleted: ", name, "\n"); });
  }
};

class ListJobsCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand("list",
                                          "Show the jobs there are, in the order of their starts; "
                                          "without --page-size and --page-token all of them");
    app->add_option("--page-size", page_size_, "Show one page of at most so many")->type_name("N");
    app->add_option("--page-token", request_.page_token, "Show the page that goes on from here")
        ->type_name("TOKEN");
    return app;
  }

  ExitCode Run(const Session& session) const override {
    if (session.local) return JobsNeedServer(session);
    const absl::StatusOr<ListJobsResponse> response = List(session);
    if (!response.ok()) return session.Refused(response.status());
    return session.Answer(ToJson(*response), [&] {
      std::string text = JobTable(response->jobs);
      if (!response->next_page_token.empty())
        absl::StrAppend(&text, "next page: --page-token ", response->next_page_token, "\n");
      return text;
    });
  }

 private:
  absl::StatusOr<ListJobsResponse> List(const Session& session) const {
    const Progress progress(session.console, "listing");
    const JobClient jobs = session.client.Jobs();
    ListJobsRequest request = request_;
    request.page_size = page_size_.value_or(0);
    if (page_size_ || !request.page_token.empty()) return jobs.List(request);
    absl::StatusOr<std::vector<Job>> all = jobs.ListAll(request);
    if (!all.ok()) return all.status();
    return ListJobsResponse{.jobs = *std::move(all)};
  }

  ListJobsRequest request_;
  std::optional<int32_t> page_size_;
};

}  // namespace

std::unique_ptr<Command> MakeGetJobCommand() { return std::make_unique<GetJobCommand>(); }
std::unique_ptr<Command> MakeListJobsCommand() { return std::make_unique<ListJobsCommand>(); }
std::unique_ptr<Command> MakeWaitForJobCommand() { return std::make_unique<WaitForJobCommand>(); }
std::unique_ptr<Command> MakeCancelJobCommand() { return std::make_unique<CancelJobCommand>(); }
std::unique_ptr<Command> MakeDeleteJobCommand() { return std::make_unique<DeleteJobCommand>(); }

}  // namespace stepcast::client
