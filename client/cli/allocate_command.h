// The command `allocate`.
#pragma once

#include <memory>

#include "client/cli/command.h"

namespace stepcast::client {

std::unique_ptr<Command> MakeAllocateCommand();

}  // namespace stepcast::client
