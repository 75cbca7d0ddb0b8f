// The shares whose least merit is highest, of those the next to least, and so on: lexicographic
// max-min.
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
//
// First, as water-filling does, the level that all claims can reach together is raised, and claims
// that have nothing better are settled there; that only leaves out shares which no best allocation
// holds. What then cannot be raised together is searched by dynamic programming over sorted merits:
// adding the same merit to two lists of merits does not change which of them is better, so the best
// of a capacity is made of bests of smaller ones.
absl::StatusOr<std::optional<std::vector<size_t>>> SearchLeastFirst(Surplus surplus, StopCheck stop,
                                                                    const SearchLimits& limits);

}  // namespace stepcast
