// The commands of the program, a file each, the questions among them, and the ends that commands on
// jobs have in common.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/session.h"
#include "google/longrunning/operations.pb.h"

#include "stepcast/v1/job_service.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stepcast::client {

// A command of the program, and a question that a command may ask in a call or as a job.
class Command {
 public:
  virtual ~Command() = default;

  // Adds itself below `parent`, and returns what it added. The command outlives the parse.
  virtual CLI::App* Declare(CLI::App& parent) = 0;

  // REQUIRES, of both below: the parse chose it.

  // True where it is about files alone, so that it is answered in this process where nobody has
  // named a server.
  virtual bool NeedsNoServer() const { return false; }
  virtual ExitCode Run(const Session& session) const = 0;
};

class Question {
 public:
  virtual ~Question() = default;

  // Adds a command with the options of the question below `parent`, and returns it. The question
  // outlives the parse.
  virtual CLI::App* Declare(CLI::App& parent) = 0;

  // The words that a terminal shows while it is answered: `predicting`.
  virtual std::string Activity() const = 0;

  // REQUIRES, of all below: the parse chose it.

  // True where it is about files alone.
  virtual bool NeedsNoServer() const = 0;
  // Checks that the flags go together: kDone, or kMisused, reported.
  virtual ExitCode Check(const Session&) const { return ExitCode::kDone; }
  // A flag that was given and says what else to do with the answer; empty: none was.
  virtual std::string_view AnswerFlag() const { return {}; }
  // The computation to ask for. Tells people how flags were understood.
  virtual absl::StatusOr<v1::StartJobRequest> Ask(const Session& session) const = 0;
  // Reports what Ask failed with, or what the service answered.
  virtual ExitCode Report(const Session& session, const absl::Status& status) const = 0;
  // Prints the reply to what was asked. REQUIRES: it is of the type of its method's replies.
  virtual ExitCode Answer(const Session& session, const v1::StartJobRequest& asked,
                          const google::protobuf::Message& reply) const = 0;
};

// Questions: `predict` and so on, and `job start predict` and so on.
std::unique_ptr<Question> MakePredictQuestion();
std::unique_ptr<Question> MakeRecommendQuestion();
std::unique_ptr<Question> MakeOrderQuestion();
std::unique_ptr<Question> MakeTuneQuestion();
std::unique_ptr<Question> MakeAllocateQuestion();
std::unique_ptr<Question> MakeCompareQuestion();
std::unique_ptr<Question> MakeDiagnoseQuestion();
std::unique_ptr<Question> MakeOptimizeQuestion();
std::unique_ptr<Question> MakeLayoutQuestion();

// A question, asked in a call or as a job.
std::unique_ptr<Command> MakeCallCommand(std::unique_ptr<Question> question);
std::unique_ptr<Command> MakeStartJobCommand(std::unique_ptr<Question> question);

// `clusters`, `layout` and its `fit`, `report`, `trace`, `bench`, `completion` and `help`.
std::unique_ptr<Command> MakeClustersCommand();
std::unique_ptr<Command> MakeLayoutCommand();
std::unique_ptr<Command> MakeLayoutFitCommand();
std::unique_ptr<Command> MakeReportCommand();
std::unique_ptr<Command> MakeTraceCommand();
std::unique_ptr<Command> MakeBenchCommand();
std::unique_ptr<Command> MakeCompletionCommand();
std::unique_ptr<Command> MakeHelpCommand();

// `profile import`, `zoo`, `check`, `fit`, `fit-collectives`, `fit-contention`, `upload`, `get`,
// `list`, `delete` and `sync`.
std::unique_ptr<Command> MakeImportCommand();
std::unique_ptr<Command> MakeZooCommand();
std::unique_ptr<Command> MakeCheckCommand();
std::unique_ptr<Command> MakeFitCommand();
std::unique_ptr<Command> MakeFitCollectivesCommand();
std::unique_ptr<Command> MakeFitContentionCommand();
std::unique_ptr<Command> MakeUploadCommand();
std::unique_ptr<Command> MakeGetCommand();
std::unique_ptr<Command> MakeListCommand();
std::unique_ptr<Command> MakeDeleteCommand();
std::unique_ptr<Command> MakeSyncCommand();

// `job get`, `list`, `wait`, `cancel` and `delete`.
std::unique_ptr<Command> MakeGetJobCommand();
std::unique_ptr<Command> MakeListJobsCommand();
std::unique_ptr<Command> MakeWaitForJobCommand();
std::unique_ptr<Command> MakeCancelJobCommand();
std::unique_ptr<Command> MakeDeleteJobCommand();

// A script for bash, made of `program`'s commands and options, those left out that its help leaves
// out. Sourced, it completes `program.get_name()`: commands, options, values where a type lists
// them (`a|b|c`, or CLI::IsMember), and files or folders where a type or an argument's name says
// FILE or DIR.
std::string BashCompletion(const CLI::App& program);
// The same for zsh and for fish, of the same commands.
std::string ZshCompletion(const CLI::App& program);
std::string FishCompletion(const CLI::App& program);

// Reports that --local has no jobs.
ExitCode JobsNeedServer(const Session& session);

// Reports that a later server replied a message that this program does not know.
ExitCode ReplyUnknown(const Session& session, const google::longrunning::Operation& job);

}  // namespace stepcast::client
