// JSON changed value by value, so that what is made of a text is JSON again.
#pragma once

#include <string>

#include "tests/fuzz/fuzz_target.h"

namespace stepcast::fuzz {

// Changes, copies, moves or leaves out one value somewhere in `text`; its bytes where it is no
// JSON, and one time in four.
std::string MutateJson(std::string text, const Mutation& mutation);

}  // namespace stepcast::fuzz
