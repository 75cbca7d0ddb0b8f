#include "core/allocate/surplus.h"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast {

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

}  // namespace stepcast
