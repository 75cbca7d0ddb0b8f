// The command `predict`.
#pragma once

#include <memory>

#include "client/cli/command.h"

namespace stepcast::client {

std::unique_ptr<Command> MakePredictCommand();

}  // namespace stepcast::client
