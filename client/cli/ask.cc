// The two ways to ask a question: `predict` and so on in a call, `job start predict` and so on as a
// job.
#include <CLI/App.hpp>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/job_outcome.h"
#include "client/cli/progress.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

using google::longrunning::Operation;
using google::protobuf::Message;
using std::chrono::steady_clock;

constexpr char kJobGroup[] = "Job";

template <typename Reply>
absl::Status Take(absl::StatusOr<Reply> answer, Message& reply) {
  if (!answer.ok()) return answer.status();
  static_cast<Reply&>(reply) = *std::move(answer);
  return absl::OkStatus();
}

// The method of each computation. REQUIRES: the reply is of its type.
absl::Status CallMethod(const Client& client, const v1::StartJobRequest& asked, Message& reply) {
  switch (asked.computation_case()) {
    case v1::StartJobRequest::kPredictThroughput:
      return Take(client.PredictThroughput(asked.predict_throughput()), reply);
    case v1::StartJobRequest::kRecommendWorkers:
      return Take(client.RecommendWorkers(asked.recommend_workers()), reply);
    case v1::StartJobRequest::kOptimizeOrder:
      return Take(client.OptimizeOrder(asked.optimize_order()), reply);
    case v1::StartJobRequest::kAllocateWorkers:
      return Take(client.AllocateWorkers(asked.allocate_workers()), reply);
    case v1::StartJobRequest::kCompareModels:
      return Take(client.CompareModels(asked.compare_models()), reply);
    case v1::StartJobRequest::kOptimizeCommunication:
      return Take(client.OptimizeCommunication(asked.optimize_communication()), reply);
    case v1::StartJobRequest::kDiagnoseJob:
      return Take(client.DiagnoseJob(asked.diagnose_job()), reply);
    case v1::StartJobRequest::kOptimizeJob:
      return Take(client.OptimizeJob(asked.optimize_job()), reply);
    case v1::StartJobRequest::kRecommendLayout:
      return Take(client.RecommendLayout(asked.recommend_layout()), reply);
    case v1::StartJobRequest::COMPUTATION_NOT_SET:
      break;
  }
  return absl::InternalError("nothing was asked");
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
    const std::unique_ptr<Message> reply = question_->NewReply();
    const absl::Status status = [&] {
      const Progress progress(session.console, question_->Activity());
      return CallMethod(session.client, *asked, *reply);
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
    const std::unique_ptr<google::protobuf::Message> reply = question_->NewReply();
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
