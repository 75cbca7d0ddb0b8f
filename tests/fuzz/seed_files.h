// A target's seeds as files.
#pragma once

#include <string>

#include "tests/fuzz/fuzz_target.h"

namespace stepcast::fuzz {

// A file each, in a folder that is there.
void WriteSeeds(const FuzzTarget& target, const std::string& folder);

}  // namespace stepcast::fuzz
