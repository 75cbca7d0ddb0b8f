// Commands on jobs that were started.
#pragma once

#include <memory>

#include "client/cli/command.h"

namespace stepcast::client {

// `job get`, `list`, `wait`, `cancel` and `delete`.
std::unique_ptr<Command> MakeGetJobCommand();
std::unique_ptr<Command> MakeListJobsCommand();
std::unique_ptr<Command> MakeWaitForJobCommand();
std::unique_ptr<Command> MakeCancelJobCommand();
std::unique_ptr<Command> MakeDeleteJobCommand();

}  // namespace stepcast::client
