// A question, asked in a call.
#pragma once

#include <memory>

#include "client/cli/command.h"
#include "client/cli/question.h"

namespace stepcast::client {

// `predict`, `recommend` and so on.
std::unique_ptr<Command> MakeCallCommand(std::unique_ptr<Question> question);

}  // namespace stepcast::client
