// Commands on the keyed store of profiles.
#pragma once

#include <memory>

#include "client/cli/command.h"

namespace stepcast::client {

// `profile upload`, `get`, `list`, `delete` and `check`.
std::unique_ptr<Command> MakeUploadCommand();
std::unique_ptr<Command> MakeGetCommand();
std::unique_ptr<Command> MakeListCommand();
std::unique_ptr<Command> MakeDeleteCommand();
std::unique_ptr<Command> MakeCheckCommand();

}  // namespace stepcast::client
