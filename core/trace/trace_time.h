// Simulated instants as a trace writes them: microseconds, exact to the picosecond.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/time.h"

namespace stepcast {

// The nearest picosecond. A tick is 25/63 of one, so no instant lies between two, and whole
// nanoseconds are exact.
int64_t ToPicoseconds(Instant at);

// Appends so many picoseconds as microseconds: "12.5", "0.000001". REQUIRES: picoseconds >= 0.
void AppendMicroseconds(int64_t picoseconds, std::string& json);

}  // namespace stepcast
