#include "core/allocate/claim.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

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

namespace {

constexpr int32_t kMost = std::numeric_limits<int32_t>::max();

// In ascending order of workers, an extra is beaten only by one before it, and only by that one's
// servers and merit.
void DropBeaten(std::vector<Extra>& extras) {
  std::sort(extras.begin(), extras.end(), [](const Extra& a, const Extra& b) {
    return std::tuple(a.workers, a.servers, -a.merit, a.share) <
           std::tuple(b.workers, b.servers, -b.merit, b.share);
  });
  std::vector<Extra> kept;
  for (const Extra& extra : extras) {
    const auto beats = [&](const Extra& other) {
      return other.servers <= extra.servers && other.merit >= extra.merit;
    };
    if (std::none_of(kept.rbegin(), kept.rend(), beats)) kept.push_back(extra);
  }
  extras = std::move(kept);
}

Extra LeastOf(const std::vector<Extra>& extras) {
  Extra least{.workers = kMost, .servers = kMost};
  for (const Extra& extra : extras) {
    least.workers = std::min(least.workers, extra.workers);
    least.servers = std::min(least.servers, extra.servers);
  }
  return least;
}

}  // namespace

bool Surplus::Settle() {
  int64_t workers_left = workers;
  int64_t servers_left = servers;
  for (std::vector<Extra>& extras : claims) {
    const Extra least = LeastOf(extras);
    for (Extra& extra : extras) {
      extra.workers -= least.workers;
      extra.servers -= least.servers;
    }
    workers_left -= least.workers;
    servers_left -= least.servers;
  }
  if (workers_left < 0 || servers_left < 0) return false;
  int64_t most_workers = 0;
  int64_t most_servers = 0;
  for (std::vector<Extra>& extras : claims) {
    std::erase_if(extras, [&](const Extra& extra) {
      return extra.workers > workers_left || extra.servers > servers_left;
    });
    if (extras.empty()) return false;
    Extra most;
    for (const Extra& extra : extras) {
      most.workers = std::max(most.workers, extra.workers);
      most.servers = std::max(most.servers, extra.servers);
    }
    most_workers += most.workers;
    most_servers += most.servers;
  }
  workers = static_cast<int32_t>(std::min(workers_left, most_workers));
  servers = static_cast<int32_t>(std::min(servers_left, most_servers));
  return true;
}

std::optional<Surplus> SurplusOf(const std::vector<Claim>& claims,
                                 const ClusterCapacity& capacity) {
  Surplus surplus{.workers = capacity.workers, .servers = capacity.servers.value_or(0)};
  for (const Claim& claim : claims) {
    std::vector<Extra>& extras = surplus.claims.emplace_back();
    for (size_t i = 0; i < claim.size(); ++i) {
      const int32_t servers = capacity.servers ? claim[i].servers : 0;
      extras.push_back({.workers = claim[i].workers,
                        .servers = servers,
                        .merit = claim[i].merit,
                        .share = static_cast<int32_t>(i)});
    }
    DropBeaten(extras);
  }
  if (!surplus.Settle()) return std::nullopt;
  return surplus;
}

std::vector<size_t> ChoiceGrid::Follow(const Surplus& surplus, size_t capacity) const {
  std::vector<size_t> shares(choices_.size());
  for (size_t claim = choices_.size(); claim-- > 0;) {
    const Extra& extra = surplus.claims[claim][static_cast<size_t>(choices_[claim][capacity])];
    shares[claim] = static_cast<size_t>(extra.share);
    capacity -= grid_.Offset(extra);
  }
  return shares;
}

absl::Status CheckSearch(const Surplus& surplus, const CapacityGrid& grid, int64_t factor,
                         const SearchLimits& limits) {
  const auto size = static_cast<double>(grid.size());
  const double states = size * static_cast<double>(surplus.claims.size());
  double extras = 0;
  for (const std::vector<Extra>& claim : surplus.claims)
    extras += static_cast<double>(claim.size());
  const double visits = size * extras * static_cast<double>(factor);
  std::string over;
  if (states > static_cast<double>(limits.max_states)) {
    over = absl::StrCat(states, " is above the limit max_states = ", limits.max_states);
  } else if (visits > static_cast<double>(limits.max_share_visits)) {
    over = absl::StrCat(visits, " is above the limit max_share_visits = ", limits.max_share_visits);
  } else {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat("the search for the best allocation is too large: ", over,
                                "; give workers in larger gangs or narrower bounds"),
                   {.reason = "ALLOCATION_TOO_LARGE",
                    .metadata = {{"spare_workers", absl::StrCat(surplus.workers)},
                                 {"spare_parameter_servers", absl::StrCat(surplus.servers)}}});
}

namespace {

constexpr int32_t kNoFit = std::numeric_limits<int32_t>::max();

// Raises what all claims together can reach.
class Level {
 public:
  explicit Level(Surplus& surplus) : surplus_(surplus), settled_(surplus.claims.size(), false) {}

  // False where nothing fits at all.
  absl::StatusOr<bool> Raise(StopCheck stop) {
    const std::vector<double> merits = AllMerits();
    if (merits.empty()) return true;
    if (!Fits(merits[0])) return false;
    size_t reached = 0;
    for (bool again = true; again; again = SettleAt(merits[reached])) {
      for (size_t beyond = merits.size(); reached + 1 < beyond;) {
        if (absl::Status status = stop(); !status.ok()) return status;
        const size_t middle = reached + (beyond - reached) / 2;
        (Fits(merits[middle]) ? reached : beyond) = middle;
      }
    }
    return true;
  }

 private:
  // Merits of settled claims do no harm: the highest that fits is always one of an open claim,
  // the least that it takes.
  std::vector<double> AllMerits() const {
    std::vector<double> merits;
    for (const std::vector<Extra>& extras : surplus_.claims) {
      for (const Extra& extra : extras) merits.push_back(extra.merit);
    }
    std::sort(merits.begin(), merits.end());
    merits.erase(std::unique(merits.begin(), merits.end()), merits.end());
    return merits;
  }

  // True if every open claim can have a share of that merit, beside what the settled ones need.
  bool Fits(double merit) const {
    // The fewest workers that all claims so far take, by the servers that they may take.
    std::vector<int32_t> fewest(static_cast<size_t>(surplus_.servers) + 1, 0);
    for (size_t claim = 0; claim < settled_.size(); ++claim) {
      std::vector<int32_t> next(fewest.size(), kNoFit);
      for (const Extra& extra : surplus_.claims[claim]) {
        if (!settled_[claim] && extra.merit < merit) continue;
        for (size_t servers = static_cast<size_t>(extra.servers); servers < next.size();
             ++servers) {
          const int32_t before = fewest[servers - static_cast<size_t>(extra.servers)];
          if (before != kNoFit && before <= surplus_.workers - extra.workers)
            next[servers] = std::min(next[servers], before + extra.workers);
        }
      }
      fewest = std::move(next);
    }
    return fewest.back() != kNoFit;
  }

  // True if a claim was settled, so that the others may be raised further.
  bool SettleAt(double merit) {
    bool any = false;
    for (size_t claim = 0; claim < settled_.size(); ++claim) {
      if (settled_[claim]) continue;
      std::vector<Extra>& extras = surplus_.claims[claim];
      std::erase_if(extras, [&](const Extra& extra) { return extra.merit < merit; });
      settled_[claim] = std::all_of(extras.begin(), extras.end(),
                                    [&](const Extra& extra) { return extra.merit == merit; });
      any = any || settled_[claim];
    }
    return any;
  }

  Surplus& surplus_;
  std::vector<bool> settled_;
};

// Sorted merits and one more, as if it were in its place.
struct Merits {
  std::span<const double> sorted;
  double more = 0;

  double At(size_t i) const {
    if (i < sorted.size() && sorted[i] <= more) return sorted[i];
    return i == 0 ? more : std::max(more, sorted[i - 1]);
  }
};

// REQUIRES: equally many.
bool IsBetter(const Merits& a, const Merits& b) {
  for (size_t i = 0; i <= a.sorted.size(); ++i) {
    const double of_a = a.At(i);
    const double of_b = b.At(i);
    if (of_a != of_b) return of_a > of_b;
  }
  return false;
}

// The sorted merits of the best choice for some claims, by capacity.
class Layer {
 public:
  Layer(size_t capacities, size_t claims)
      : claims_(claims), merits_(capacities * claims), fits_(capacities, claims == 0) {}

  bool Fits(size_t capacity) const { return fits_[capacity]; }
  std::span<const double> Of(size_t capacity) const {
    return {merits_.data() + capacity * claims_, claims_};
  }
  void Set(size_t capacity, const Merits& merits) {
    for (size_t i = 0; i < claims_; ++i) merits_[capacity * claims_ + i] = merits.At(i);
    fits_[capacity] = true;
  }
  bool AreSame(size_t a, size_t b) const {
    return fits_[a] == fits_[b] && std::ranges::equal(Of(a), Of(b));
  }

 private:
  size_t claims_;
  std::vector<double> merits_;
  std::vector<bool> fits_;
};

// Fills `next` at one capacity from `without`.
void Choose(const std::vector<Extra>& extras, const CapacityGrid& grid, int32_t workers,
            int32_t servers, const Layer& without, Layer& next, std::vector<int32_t>& choices) {
  const size_t to = grid.Index(workers, servers);
  Merits best;
  int32_t choice = -1;
  for (size_t i = 0; i < extras.size() && extras[i].workers <= workers; ++i) {
    if (extras[i].servers > servers || !without.Fits(to - grid.Offset(extras[i]))) continue;
    const Merits merits{.sorted = without.Of(to - grid.Offset(extras[i])), .more = extras[i].merit};
    if (choice >= 0 && !IsBetter(merits, best)) continue;
    best = merits;
    choice = static_cast<int32_t>(i);
  }
  if (choice < 0) return;
  next.Set(to, best);
  choices[to] = choice;
}

absl::StatusOr<std::optional<std::vector<size_t>>> SearchSorted(const Surplus& surplus,
                                                                StopCheck stop,
                                                                const SearchLimits& limits) {
  const CapacityGrid grid(surplus);
  const auto cost = static_cast<int64_t>(surplus.claims.size());
  if (absl::Status status = CheckSearch(surplus, grid, cost, limits); !status.ok()) return status;
  ChoiceGrid choices(surplus, grid);
  Layer layer(grid.size(), 0);
  for (size_t claim = 0; claim < surplus.claims.size(); ++claim) {
    Layer next(grid.size(), claim + 1);
    for (int32_t servers = 0; servers <= grid.servers(); ++servers) {
      for (int32_t workers = 0; workers <= grid.workers(); ++workers) {
        if (absl::Status status = stop(); !status.ok()) return status;
        Choose(surplus.claims[claim], grid, workers, servers, layer, next, choices.Of(claim));
      }
    }
    layer = std::move(next);
  }
  if (!layer.Fits(grid.size() - 1)) return std::nullopt;
  int32_t workers = grid.workers();
  while (workers > 0 && layer.AreSame(grid.Index(workers - 1, grid.servers()), grid.size() - 1))
    --workers;
  int32_t servers = grid.servers();
  while (servers > 0 && layer.AreSame(grid.Index(workers, servers - 1), grid.size() - 1)) --servers;
  return choices.Follow(surplus, grid.Index(workers, servers));
}

}  // namespace

absl::StatusOr<std::optional<std::vector<size_t>>> SearchLeastFirst(Surplus surplus, StopCheck stop,
                                                                    const SearchLimits& limits) {
  const absl::StatusOr<bool> fits = Level(surplus).Raise(stop);
  if (!fits.ok()) return fits.status();
  if (!*fits || !surplus.Settle()) return std::nullopt;
  return SearchSorted(surplus, stop, limits);
}

}  // namespace stepcast
