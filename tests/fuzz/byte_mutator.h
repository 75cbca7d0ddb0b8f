// Bytes changed by a seeded generator, for programs without a fuzzer's own mutations.
#pragma once

#include <string>

#include "core/base/random.h"

namespace stepcast::fuzz {

// One of: cut short, bits flipped, bytes replaced, a part left out, there twice or moved, a few
// bytes put in. A function of its arguments.
std::string MutateBytes(std::string bytes, Random& random);

}  // namespace stepcast::fuzz
