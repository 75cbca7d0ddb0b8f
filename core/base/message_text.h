// Quantities, lengths of time and foreign text, as messages for people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepcast {

// Four significant digits, and all before the point: `0.07136`, `680.5`, `13409`. An exponent only
// below 1e-4, and from 1e15 on.
std::string NumberText(double value);

// Four digits in the unit that fits: "690.1 ms", "-3 ns", "2.5 s".
std::string DurationText(int64_t ns);

// An instant of a recording, from its clock's zero on, exactly: "7.500012345 s".
std::string ClockText(int64_t ns);

// `text` in double quotes, everything but printable ASCII escaped, cut with an ellipsis after 64
// characters: whatever bytes came in, the message stays short, valid UTF-8 and on one line.
std::string Quoted(std::string_view text);

}  // namespace stepcast
