// Lengths of time and instants as messages for people write them.
#pragma once

#include <cstdint>
#include <string>

namespace stepcast {

// Four digits in the unit that fits: "690.1 ms", "-3 ns", "2.5 s".
std::string DurationText(int64_t ns);

// An instant of a recording, from its clock's zero on, exactly: "7.500012345 s".
std::string ClockText(int64_t ns);

}  // namespace stepcast
