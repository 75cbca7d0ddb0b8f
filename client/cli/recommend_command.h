// The command `recommend`.
#pragma once

#include <memory>

#include "client/cli/command.h"

namespace stepcast::client {

std::unique_ptr<Command> MakeRecommendCommand();

}  // namespace stepcast::client
