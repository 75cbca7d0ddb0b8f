#include "client/cli/call_command.h"

#include <utility>
#include <variant>

#include "client/cli/progress.h"

namespace stepcast::client {

namespace {

// The method of each computation.
struct CallMethod {
  const Client& client;

  absl::StatusOr<JobReply> operator()(const PredictThroughputRequest& request) const {
    return client.PredictThroughput(request);
  }
  absl::StatusOr<JobReply> operator()(const RecommendWorkersRequest& request) const {
    return client.RecommendWorkers(request);
  }
  absl::StatusOr<JobReply> operator()(const OptimizeOrderRequest& request) const {
    return client.OptimizeOrder(request);
  }
  absl::StatusOr<JobReply> operator()(const AllocateWorkersRequest& request) const {
    return client.AllocateWorkers(request);
  }
  absl::StatusOr<JobReply> operator()(const CompareModelsRequest& request) const {
    return client.CompareModels(request);
  }
};

class CallCommand : public Command {
 public:
  explicit CallCommand(std::unique_ptr<Question> question) : question_(std::move(question)) {}

  CLI::App* Declare(CLI::App& parent) override { return question_->Declare(parent); }

  bool NeedsNoServer() const override { return question_->NeedsNoServer(); }

  ExitCode Run(const Session& session) const override {
    if (const ExitCode code = question_->Check(session); code != ExitCode::kDone) return code;
    const absl::StatusOr<JobComputation> asked = question_->Ask(session);
    if (!asked.ok()) return question_->Report(session, asked.status());
    const absl::StatusOr<JobReply> reply = [&] {
      const Progress progress(session.console, question_->Activity());
      return std::visit(CallMethod{session.client}, *asked);
    }();
    if (!reply.ok()) return question_->Report(session, reply.status());
    return question_->Answer(session, *asked, *reply);
  }

 private:
  const std::unique_ptr<Question> question_;
};

}  // namespace

std::unique_ptr<Command> MakeCallCommand(std::unique_ptr<Question> question) {
  return std::make_unique<CallCommand>(std::move(question));
}

}  // namespace stepcast::client
