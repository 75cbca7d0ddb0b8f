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

#include "absl/status/status.h"
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

// The surplus of a cluster, and the decision table of dynamic programming over it.

// A share, beyond the least workers and the least servers of its claim.
struct Extra {
  int32_t workers = 0;
  int32_t servers = 0;  // 0 where servers are without limit
  double merit = 0;
  int32_t share = 0;  // its index in the claim
};

// The shares and the capacity that remain once every claim has its least.
struct Surplus {
  std::vector<std::vector<Extra>> claims;  // by workers, then servers, ascending; nothing that
                                           // another one beats at no more of both
  int32_t workers = 0;  // of the capacity, no more than all claims together can take
  int32_t servers = 0;

  // The least of every claim taken off the capacity, and what does not fit any more left out. False
  // where the leasts do not fit: the rest is meaningless then.
  bool Settle();
};

// None where the leasts do not fit. REQUIRES: as ShareExactly.
std::optional<Surplus> SurplusOf(const std::vector<Claim>& claims, const ClusterCapacity& capacity);

// A capacity is one number, servers first: so rows of workers are contiguous.
class CapacityGrid {
 public:
  explicit CapacityGrid(const Surplus& surplus)
      : workers_(surplus.workers), servers_(surplus.servers) {}

  int32_t workers() const { return workers_; }
  int32_t servers() const { return servers_; }
  size_t size() const { return Row(servers_ + 1); }
  // REQUIRES, here and below: neither is negative nor above what there is.
  size_t Index(int32_t workers, int32_t servers) const {
    return Row(servers) + static_cast<size_t>(workers);
  }
  size_t Row(int32_t servers) const {
    return static_cast<size_t>(servers) * (static_cast<size_t>(workers_) + 1);
  }
  // The distance, in indices, from the capacity without an extra to the one with it.
  size_t Offset(const Extra& extra) const {
    return Row(extra.servers) + static_cast<size_t>(extra.workers);
  }

 private:
  int32_t workers_;
  int32_t servers_;
};

// The extra that every claim takes at every capacity. Memory: 4 bytes a claim and capacity.
class ChoiceGrid {
 public:
  ChoiceGrid(const Surplus& surplus, const CapacityGrid& grid)
      : grid_(grid), choices_(surplus.claims.size(), std::vector<int32_t>(grid.size())) {}

  // The choices of one claim, by capacity: an index into its extras.
  std::vector<int32_t>& Of(size_t claim) { return choices_[claim]; }
  // The share of every claim at that capacity. REQUIRES: all were chosen; the grid and the surplus
  // are those of the search.
  std::vector<size_t> Follow(const Surplus& surplus, size_t capacity) const;

 private:
  const CapacityGrid& grid_;
  std::vector<std::vector<int32_t>> choices_;
};

// ALLOCATION_TOO_LARGE where the search would be: `factor` is what a visit of a share costs.
absl::Status CheckSearch(const Surplus& surplus, const CapacityGrid& grid, int64_t factor,
                         const SearchLimits& limits);

// The shares whose least merit is highest, of those the next to least, and so on: lexicographic
// max-min.
//
// Threads: pure function. Cost, failure: see ShareExactly.

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
