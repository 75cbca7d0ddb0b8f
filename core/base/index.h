// Indexes are int32_t where many of them are stored, and size_t where a container is asked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepcast {

// REQUIRES: i >= 0.
constexpr size_t Index(int32_t i) { return static_cast<size_t>(i); }

}  // namespace stepcast
