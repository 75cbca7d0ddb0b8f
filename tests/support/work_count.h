// The work of this program, in units that every machine has and that no other program on it
// changes: basic blocks run, and words allocated.
//
// Blocks are counted of the code that is compiled with -fsanitize-coverage=trace-pc
// (stepcast_counted in tests/CMakeLists.txt), words of all code, so that a copy made by memmove is
// work, too. Threads: none. It replaces operator new in every program that is linked with it.
#pragma once

#include <cstdint>

namespace stepcast {

int64_t WorkSoFar();

}  // namespace stepcast
