// The command `compare`.
#pragma once

#include <memory>

#include "client/cli/command.h"

namespace stepcast::client {

std::unique_ptr<Command> MakeCompareCommand();

}  // namespace stepcast::client
