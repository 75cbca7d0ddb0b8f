// A question, asked as a job.
#pragma once

#include <memory>

#include "client/cli/command.h"
#include "client/cli/question.h"

namespace stepcast::client {

// `job start predict`, `job start recommend` and so on.
std::unique_ptr<Command> MakeStartJobCommand(std::unique_ptr<Question> question);

}  // namespace stepcast::client
