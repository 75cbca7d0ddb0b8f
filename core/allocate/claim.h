// The multiple-choice knapsack problem of sharing a cluster, and its exact solution.
//
// A claim is all that a job may get; the solution is the best of all ways to share the two
// capacities.
// Source: Kellerer, Pferschy, Pisinger: "Knapsack Problems", 2004, chapter 11.
// Solved by dynamic programming over capacities, so no shape of a curve is assumed: greedy by
// marginal gain, even on a concave envelope, may miss the best by what lies between two corners.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"

namespace stepcast {

// One thing that a job may get.
struct Share {
  int32_t workers = 0;
  int32_t servers = 0;
  double merit = 0;  // not NaN; with kMinFirst it may be -infinity
};

// All that one job may get; it gets exactly one of them.
using Claim = std::vector<Share>;

struct ClusterCapacity {
  int32_t workers = 0;
  std::optional<int32_t> servers;  // none: as many as wanted
  std::optional<int32_t> devices;  // shared in place of workers; shares are not searched by it
};

enum class MeritRule : uint8_t {
  kTotal,     // the highest sum
  kMinFirst,  // the highest least merit, of those the highest next to least, and so on
};

// Bounds of the search: claims x capacities held, and shares looked at.
struct SearchLimits {
  int64_t max_states = 20'000'000;
  int64_t max_share_visits = 4'000'000'000;  // some 3 s
};

// The index of each claim's share: the best by the rule; of equally good ones the one with the
// fewest workers, then the fewest servers.
//
// None where even the least of every claim does not fit. REQUIRES: no claim is empty; nothing is
// negative. Cost: with kTotal shares x capacity, counted after what every claim gets in any case is
// taken off the capacity, and shares that another one beats at no more workers and servers are left
// out; with kMinFirst the same over what is left when all that can be raised together has been,
// times claims. Failure: what `stop` returns; INVALID_ARGUMENT, reason ALLOCATION_TOO_LARGE, beyond
// the limits.
absl::StatusOr<std::optional<std::vector<size_t>>> ShareExactly(const std::vector<Claim>& claims,
                                                                const ClusterCapacity& capacity,
                                                                MeritRule rule, StopCheck stop,
                                                                const SearchLimits& limits = {});

}  // namespace stepcast
