// The command `order`.
#pragma once

#include <memory>

#include "client/cli/command.h"

namespace stepcast::client {

std::unique_ptr<Command> MakeOrderCommand();

}  // namespace stepcast::client
