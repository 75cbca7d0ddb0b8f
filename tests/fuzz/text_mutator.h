// Text changed line by line and word by word.
#pragma once

#include <string>

#include "tests/fuzz/fuzz_target.h"

namespace stepcast::fuzz {

// Leaves out, repeats, moves or replaces a line or a word of `text` by another one of it; its bytes
// one time in two.
std::string MutateText(std::string text, const Mutation& mutation);

}  // namespace stepcast::fuzz
