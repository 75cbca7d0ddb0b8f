#include "client/cli/start_job_command.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/job_outcome.h"
#include "client/cli/progress.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr char kJobGroup[] = "Job";

class StartJobCommand : public Command {
 public:
  explicit StartJobCommand(std::unique_ptr<Question> question) : question_(std::move(question)) {}

  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = question_->Declare(parent);
    app->add_option(
           "--request-id", request_id_,
           "A UUID that makes repeating the command safe: it starts one job (default: a new one)")
        ->type_name("UUID")
        ->group(kJobGroup);
    app->add_flag("--wait", wait_,
                  "Wait until it is done, at most --timeout, and print the answer instead of the "
                  "job's name")
        ->group(kJobGroup);
    return app;
  }

  ExitCode Run(const Session& session) const override {
    if (session.local) return JobsNeedServer(session);
    if (const std::string_view flag = question_->AnswerFlag(); !wait_ && !flag.empty()) {
      return session.Misused(
          absl::StrCat(std::string(flag), " is about the answer: it needs --wait"));
    }
    if (const ExitCode code = question_->Check(session); code != ExitCode::kDone) return code;
    const absl::StatusOr<JobComputation> asked = question_->Ask(session);
    if (!asked.ok()) return question_->Report(session, asked.status());
    const steady_clock::time_point begin = steady_clock::now();
    const absl::StatusOr<Job> job = [&] {
      const Progress progress(session.console, "starting");
      return session.client.Jobs().Start({.request_id = request_id_, .computation = *asked});
    }();
    if (!job.ok()) return question_->Report(session, job.status());
    if (!wait_) return session.Answer(ToJson(*job), [&] { return absl::StrCat(job->name, "\n"); });
    // Whoever gives up waiting finds it under this name.
    session.console.err << "started: " << job->name << std::endl;
    return Wait(session, *asked, job->name, session.patience - (steady_clock::now() - begin));
  }

 private:
  ExitCode Wait(const Session& session, const JobComputation& asked, const std::string& name,
                nanoseconds patience) const {
    const absl::StatusOr<Job> done = [&] {
      const Progress progress(session.console, question_->Activity());
      return session.client.Jobs().Wait(name, {.timeout = patience});
    }();
    if (!done.ok()) return session.Refused(done.status());
    if (!done->status.ok()) return question_->Report(session, done->status);
    // A reply stands in its variant where its computation does, behind none.
    if (done->reply.index() != asked.index() + 1) return ReplyUnknown(session, *done);
    return question_->Answer(session, asked, done->reply);
  }

  const std::unique_ptr<Question> question_;
  std::string request_id_;
  bool wait_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeStartJobCommand(std::unique_ptr<Question> question) {
  return std::make_unique<StartJobCommand>(std::move(question));
}

}  // namespace stepcast::client
