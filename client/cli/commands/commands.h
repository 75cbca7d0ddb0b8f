// The commands of the program, a file each.
#pragma once

#include <memory>
#include <string>

#include "client/cli/commands/command.h"

namespace stepcast::client {

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

}  // namespace stepcast::client
