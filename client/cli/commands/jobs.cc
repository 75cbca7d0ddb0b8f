// `job get`, `list`, `wait`, `cancel` and `delete`: computations that were started.
#include <CLI/App.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/profile_argument.h"
#include "client/cli/texts/answer_texts.h"
#include "client/cli/texts/characters.h"
#include "client/cli/texts/prediction_table.h"
#include "client/cli/texts/progress.h"
#include "client/cli/texts/table.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

using google::longrunning::ListOperationsResponse;
using google::longrunning::Operation;
using google::protobuf::Descriptor;
using google::protobuf::Message;

std::string TextOrDash(const std::string& text) {
  return text.empty() ? "-" : Utf8(Characters(text));
}

std::string StateText(const Operation& job, const v1::JobMetadata& metadata) {
  const std::string name = v1::JobMetadata::State_Name(metadata.state());
  std::string state = absl::AsciiStrToLower(absl::StripPrefix(name, "JOB_"));
  if (name.empty()) state = "state_unspecified";
  if (metadata.cancel_requested() && !job.done()) state += ", to be cancelled";
  return state;
}

std::string TimeOrDash(bool is_known, const google::protobuf::Timestamp& time) {
  return is_known ? TimeText(time) : "-";
}
std::string CreatedText(const v1::JobMetadata& job) {
  return TimeOrDash(job.has_create_time(), job.create_time());
}
std::string StartedText(const v1::JobMetadata& job) {
  return TimeOrDash(job.has_start_time(), job.start_time());
}
std::string EndedText(const v1::JobMetadata& job) {
  return TimeOrDash(job.has_end_time(), job.end_time());
}

// The text of a reply.
using ReplyToText = std::function<std::string(const Message& reply)>;

// The kinds of replies that jobs have, a row each: `text` of one makes its text.
template <typename Reply>
std::pair<const Descriptor*, ReplyToText> Row(std::string (*text)(const Reply& reply)) {
  return {Reply::descriptor(),
          [text](const Message& reply) { return text(static_cast<const Reply&>(reply)); }};
}
const std::map<const Descriptor*, ReplyToText>& Replies() {
  static const auto& replies = *new std::map<const Descriptor*, ReplyToText>{
      Row<v1::PredictThroughputResponse>(
          [](const auto& reply) { return PredictionTable(reply.predictions()); }),
      Row(RecommendationText),
      Row<v1::OptimizeOrderResponse>(
          [](const auto& reply) { return OrderText(reply, kDefaultTransfers); }),
      Row(AllocationText),
      Row(ComparisonText),
      Row(TuningText),
      Row(DiagnosisText),
      Row(StrategyText),
      Row(LayoutText)};
  return replies;
}

// Applies `to_text` to the reply of a job. Empty: there is none, or none that is known.
std::string DescribeReply(const Operation& job, const ReplyToText& to_text) {
  for (const auto& [type, _] : Replies()) {
    const std::unique_ptr<Message> reply(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
    if (job.response().UnpackTo(reply.get())) return to_text(*reply);
  }
  return "";
}

// Reports what a job failed with, as a call that failed so, or a reply that is not known; kDone for
// any other job, also one that is not done.
ExitCode OutcomeOf(const Session& session, const Operation& job) {
  if (const absl::Status status = GetJobStatus(job); !status.ok()) return session.Refused(status);
  if (job.done() && ReplyText(job).empty()) return ReplyUnknown(session, job);
  return ExitCode::kDone;
}

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
    const absl::StatusOr<Operation> job = [&] {
      const Progress progress(session.console, "reading");
      return session.client.Jobs().Get(name);
    }();
    if (!job.ok()) return session.Refused(job.status());
    const ExitCode code = session.Answer(ToJson(*job), [&] {
      const std::string reply = ReplyText(*job);
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
    const absl::StatusOr<Operation> job = [&] {
      const Progress progress(session.console, "waiting");
      return session.client.Jobs().Wait(name, {.timeout = session.patience});
    }();
    if (!job.ok()) return session.Refused(job.status());
    if (const ExitCode code = OutcomeOf(session, *job); code != ExitCode::kDone) return code;
    return session.Answer(ReplyJson(*job), [&] { return ReplyText(*job); });
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
    app->add_option("--page-token", page_token_, "Show the page that goes on from here")
        ->type_name("TOKEN");
    return app;
  }

  ExitCode Run(const Session& session) const override {
    if (session.local) return JobsNeedServer(session);
    const absl::StatusOr<ListOperationsResponse> response = List(session);
    if (!response.ok()) return session.Refused(response.status());
    return session.Answer(ToJson(*response), [&] {
      std::string text = JobTable(*response);
      if (!response->next_page_token().empty())
        absl::StrAppend(&text, "next page: --page-token ", response->next_page_token(), "\n");
      return text;
    });
  }

 private:
  absl::StatusOr<ListOperationsResponse> List(const Session& session) const {
    const Progress progress(session.console, "listing");
    const JobClient jobs = session.client.Jobs();
    google::longrunning::ListOperationsRequest request;
    request.set_page_size(page_size_.value_or(0));
    request.set_page_token(page_token_);
    return page_size_ || !page_token_.empty() ? jobs.List(request) : jobs.ListAll(request);
  }

  std::string page_token_;
  std::optional<int32_t> page_size_;
};

}  // namespace

ExitCode JobsNeedServer(const Session& session) {
  return session.Misused("jobs need a server; --local has none");
}

ExitCode ReplyUnknown(const Session& session, const Operation& job) {
  return session.Refused(absl::UnimplementedError(
      absl::StrCat(job.name(), " is done, but this program does not know its kind of answer")));
}

std::string JobTable(const ListOperationsResponse& response) {
  constexpr auto kLeft = Table::Align::kLeft;
  Table table({{"name", kLeft},
               {"method", kLeft},
               {"state", kLeft},
               {"attempts"},
               {"created", kLeft},
               {"started", kLeft},
               {"ended", kLeft}});
  for (const Operation& job : response.operations()) {
    const v1::JobMetadata metadata = GetJobMetadata(job);
    table.AddRow({TextOrDash(job.name()), TextOrDash(metadata.method()), StateText(job, metadata),
                  absl::StrCat(metadata.attempts()), CreatedText(metadata), StartedText(metadata),
                  EndedText(metadata)});
  }
  return table.Text();
}

std::string JobText(const Operation& job) {
  constexpr auto kLeft = Table::Align::kLeft;
  const v1::JobMetadata metadata = GetJobMetadata(job);
  Table table({{"job", kLeft}, {TextOrDash(job.name()), kLeft}});
  table.AddRow({"method", TextOrDash(metadata.method())});
  table.AddRow({"state", StateText(job, metadata)});
  table.AddRow({"attempts", absl::StrCat(metadata.attempts())});
  table.AddRow({"created", CreatedText(metadata)});
  table.AddRow({"started", StartedText(metadata)});
  table.AddRow({"ended", EndedText(metadata)});
  const std::string of = metadata.expected_operations() > 0
                             ? absl::StrCat(" of ", metadata.expected_operations())
                             : std::string();
  table.AddRow(
      {"simulated", absl::StrCat("about ", metadata.simulated_operations(), of, " operations")});
  table.AddRow({"server", TextOrDash(metadata.replica())});
  return table.Text();
}

std::string ReplyText(const Operation& job) {
  return DescribeReply(
      job, [](const Message& reply) { return Replies().at(reply.GetDescriptor())(reply); });
}

std::string ReplyJson(const Operation& job) {
  return DescribeReply(job, [](const Message& reply) { return ToJson(reply); });
}

std::unique_ptr<Command> MakeGetJobCommand() { return std::make_unique<GetJobCommand>(); }
std::unique_ptr<Command> MakeListJobsCommand() { return std::make_unique<ListJobsCommand>(); }
std::unique_ptr<Command> MakeWaitForJobCommand() { return std::make_unique<WaitForJobCommand>(); }
std::unique_ptr<Command> MakeCancelJobCommand() { return std::make_unique<CancelJobCommand>(); }
std::unique_ptr<Command> MakeDeleteJobCommand() { return std::make_unique<DeleteJobCommand>(); }

}  // namespace stepcast::client
