// The shares with the highest total merit.
//
// Threads: pure function. Cost, failure: see ShareExactly.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "core/allocate/surplus.h"
#include "core/base/stop_check.h"

namespace stepcast {

// The index of each claim's share; none where nothing fits.
absl::StatusOr<std::optional<std::vector<size_t>>> SearchTotal(const Surplus& surplus,
                                                               StopCheck stop,
                                                               const SearchLimits& limits);

}  // namespace stepcast
