// The usual length of a recording's steps, by which odd ones are told.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

// The upper median; there is at least one.
int64_t MiddleOf(std::vector<int64_t> values);

// The length above which a step is beyond the usual variation, and by so much that a step more or
// less is seen. Of few steps the usual one is not known.
int64_t LongestUsual(const std::vector<int64_t>& lengths, int64_t median);

}  // namespace stepcast
