// `stepcast bench`: how many calls a server answers, and how long they take.
#pragma once

#include <memory>

#include "client/cli/command.h"

namespace stepcast::client {

std::unique_ptr<Command> MakeBenchCommand();

}  // namespace stepcast::client
