// The texts of counts and times, as people read them.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepcast {

// `1 worker`, `2 workers`.
std::string CountText(int32_t count, std::string_view noun);

// Three digits, in the unit that suits: `0.25 s`, `3 min`, `1.5 h`, `4 d`. REQUIRES: seconds >= 0.
std::string TimeText(double seconds);

}  // namespace stepcast
