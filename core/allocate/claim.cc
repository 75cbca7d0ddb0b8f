#include "core/allocate/claim.h"

#include <limits>
#include <utility>

#include "core/allocate/surplus.h"

namespace stepcast {

namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

// The best totals with `extra` taken, where they are better. `without` and `totals` are by
// capacity, `choices` says of which extra a total is.
void Take(const Extra& extra, int32_t index, const CapacityGrid& grid,
          const std::vector<double>& without, std::vector<double>& totals,
          std::vector<int32_t>& choices) {
  const size_t offset = grid.Offset(extra);
  for (int32_t servers = extra.servers; servers <= grid.servers(); ++servers) {
    const size_t end = grid.Row(servers) + static_cast<size_t>(grid.workers()) + 1;
    for (size_t to = grid.Index(extra.workers, servers); to < end; ++to) {
      const double total = without[to - offset] + extra.merit;
      const bool better = total > totals[to];
      totals[to] = better ? total : totals[to];
      choices[to] = better ? index : choices[to];
    }
  }
}

// The shares with the highest total merit.
// Cost, failure: see ShareExactly.
absl::StatusOr<std::optional<std::vector<size_t>>> SearchTotal(const Surplus& surplus,
                                                               StopCheck stop,
                                                               const SearchLimits& limits) {
  const CapacityGrid grid(surplus);
  if (absl::Status status = CheckSearch(surplus, grid, 1, limits); !status.ok()) return status;
  ChoiceGrid choices(surplus, grid);
  std::vector<double> totals(grid.size(), 0.0);
  std::vector<double> without(grid.size());
  for (size_t claim = 0; claim < surplus.claims.size(); ++claim) {
    totals.swap(without);
    totals.assign(grid.size(), kNothing);
    const std::vector<Extra>& extras = surplus.claims[claim];
    for (size_t i = 0; i < extras.size(); ++i) {
      if (absl::Status status = stop(); !status.ok()) return status;
      Take(extras[i], static_cast<int32_t>(i), grid, without, totals, choices.Of(claim));
    }
  }
  // Totals do not fall as the capacity grows, and equal choices have equal totals, bit for bit.
  const double best = totals[grid.size() - 1];
  if (best == kNothing) return std::nullopt;
  int32_t workers = grid.workers();
  while (workers > 0 && totals[grid.Index(workers - 1, grid.servers())] == best) --workers;
  int32_t servers = grid.servers();
  while (servers > 0 && totals[grid.Index(workers, servers - 1)] == best) --servers;
  return choices.Follow(surplus, grid.Index(workers, servers));
}

}  // namespace

absl::StatusOr<std::optional<std::vector<size_t>>> ShareExactly(const std::vector<Claim>& claims,
                                                                const ClusterCapacity& capacity,
                                                                MeritRule rule, StopCheck stop,
                                                                const SearchLimits& limits) {
  std::optional<Surplus> surplus = SurplusOf(claims, capacity);
  if (!surplus) return std::nullopt;
  return rule == MeritRule::kTotal ? SearchTotal(*surplus, stop, limits)
                                   : SearchLeastFirst(*std::move(surplus), stop, limits);
}

}  // namespace stepcast
