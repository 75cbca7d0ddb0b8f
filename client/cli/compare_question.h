// What `compare` asks.
#pragma once

#include <memory>

#include "client/cli/question.h"

namespace stepcast::client {

std::unique_ptr<Question> MakeCompareQuestion();

}  // namespace stepcast::client
