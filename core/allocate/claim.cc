#include "core/allocate/claim.h"

#include <utility>

#include "core/allocate/least_first_search.h"
#include "core/allocate/surplus.h"
#include "core/allocate/total_search.h"

namespace stepcast {

absl::StatusOr<std::optional<std::vector<size_t>>> ShareExactly(std::vector<Claim> claims,
                                                                const ClusterCapacity& capacity,
                                                                MeritRule rule, StopCheck stop,
                                                                const SearchLimits& limits) {
  std::optional<Surplus> surplus = SurplusOf(std::move(claims), capacity);
  if (!surplus) return std::nullopt;
  return rule == MeritRule::kTotal ? SearchTotal(*surplus, stop, limits)
                                   : SearchLeastFirst(*std::move(surplus), stop, limits);
}

}  // namespace stepcast
