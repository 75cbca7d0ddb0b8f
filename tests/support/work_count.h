// The work of this program, in units that every machine has and that no other program on it
// changes: basic blocks run, and words moved.
//
// Blocks are counted of the code that is compiled with -fsanitize-coverage=trace-pc, words of all
// that calls memcpy, memmove or memset, as copies of vectors do: stepcast_counted_test in
// tests/CMakeLists.txt does both. Threads: none.
#pragma once

#include <cstdint>

namespace stepcast {

int64_t WorkSoFar();

}  // namespace stepcast
