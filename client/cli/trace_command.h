// `stepcast trace PROFILE`: what the first steps look like, as a file for ui.perfetto.dev.
#pragma once

#include <memory>

#include "client/cli/command.h"

namespace stepcast::client {

std::unique_ptr<Command> MakeTraceCommand();

}  // namespace stepcast::client
