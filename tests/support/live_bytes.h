// The bytes that a program has allocated and not freed: counted by operator new, which this
// replaces in every program that is linked with it.
#pragma once

#include <atomic>
#include <cstdint>

namespace stepcast::testing {

extern std::atomic<int64_t> live_bytes;
// Set it to live_bytes to count anew.
extern std::atomic<int64_t> most_live_bytes;

}  // namespace stepcast::testing
