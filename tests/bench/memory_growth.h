// The resident memory that a computation needs at its peak, on top of what the process has.
#pragma once

#include <cstdint>
#include <functional>

namespace stepcast::bench {

// In a process of its own, whose heap is trimmed before. Throws std::runtime_error where /proc does
// not tell.
int64_t PeakGrowthBytes(const std::function<void()>& compute);

}  // namespace stepcast::bench
