#include "core/allocate/choice_grid.h"

#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast {

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
