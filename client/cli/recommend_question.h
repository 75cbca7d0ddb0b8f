// What `recommend` asks.
#pragma once

#include <memory>

#include "client/cli/question.h"

namespace stepcast::client {

std::unique_ptr<Question> MakeRecommendQuestion();

}  // namespace stepcast::client
