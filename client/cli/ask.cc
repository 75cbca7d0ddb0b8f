// The two ways to ask a question: `predict` and so on in a call, `job start predict` and so on as a
// job.
#include <CLI/App.hpp>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/texts/progress.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

using google::longrunning::Operation;
using google::protobuf::Message;
using std::chrono::steady_clock;

constexpr char kJobGroup[] = "Job";

// The request of the method that a job is to compute. REQUIRES: there is one.
const Message& ComputationOf(const v1::StartJobRequest& asked) {
  const google::protobuf::OneofDescriptor* const computation =
      asked.GetDescriptor()->FindOneofByName("computation");
  const google::protobuf::Reflection& reflection = *asked.GetReflection();
  return reflection.GetMessage(asked, reflection.GetOneofFieldDescriptor(asked, computation));
}

class CallCommand : public Command {
 public:
  explicit CallCommand(std::unique_ptr<Question> question) : question_(std::move(question)) {}

  CLI::App* Declare(CLI::App& parent) override { return question_->Declare(parent); }

  bool NeedsNoServer() const override { return question_->NeedsNoServer(); }

  ExitCode Run(const Session& session) const override {
    if (const ExitCode code = question_->Check(session); code != ExitCode::kDone) return code;
    const absl::StatusOr<v1::StartJobRequest> asked = question_->Ask(session);
    if (!asked.ok()) return question_->Report(session, asked.status());
    const Message& computation = ComputationOf(*asked);
    const std::unique_ptr<Message> reply = NewReplyTo(computation);
    const absl::Status status = [&] {
      const Progress progress(session.console, question_->Activity());
      return session.client.Call(computation, *reply);
    }();
    if (!status.ok()) return question_->Report(session, status);
    return question_->Answer(session, *asked, *reply);
  }

 private:
  const std::unique_ptr<Question> question_;
};

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
    absl::StatusOr<v1::StartJobRequest> asked = question_->Ask(session);
    if (!asked.ok()) return question_->Report(session, asked.status());
    asked->set_request_id(request_id_);
    const steady_clock::time_point begin = steady_clock::now();
    const absl::StatusOr<Operation> job = [&] {
      const Progress progress(session.console, "starting");
      return session.client.Jobs().Start(*asked);
    }();
    if (!job.ok()) return question_->Report(session, job.status());
    if (!wait_)
      return session.Answer(ToJson(*job), [&] { return absl::StrCat(job->name(), "\n"); });
    // Whoever gives up waiting finds it under this name.
    session.console.err << "started: " << job->name() << std::endl;
    return Wait(session, *asked, job->name(), session.patience - (steady_clock::now() - begin));
  }

 private:
  ExitCode Wait(const Session& session, const v1::StartJobRequest& asked, const std::string& name,
                std::chrono::nanoseconds patience) const {
    const absl::StatusOr<Operation> done = [&] {
      const Progress progress(session.console, question_->Activity());
      return session.client.Jobs().Wait(name, {.timeout = patience});
    }();
    if (!done.ok()) return session.Refused(done.status());
    if (const absl::Status status = GetJobStatus(*done); !status.ok())
      return question_->Report(session, status);
    const std::unique_ptr<Message> reply = NewReplyTo(ComputationOf(asked));
    if (!done->response().UnpackTo(reply.get())) return ReplyUnknown(session, *done);
    return question_->Answer(session, asked, *reply);
  }

  const std::unique_ptr<Question> question_;
  std::string request_id_;
  bool wait_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCallCommand(std::unique_ptr<Question> question) {
  return std::make_unique<CallCommand>(std::move(question));
}

std::unique_ptr<Command> MakeStartJobCommand(std::unique_ptr<Question> question) {
  return std::make_unique<StartJobCommand>(std::move(question));
}

}  // namespace stepcast::client
