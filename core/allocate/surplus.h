// The surplus of a cluster: the shares and the capacity that remain once every claim has its least.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/allocate/claim.h"

namespace stepcast {

// A share, beyond the least workers and the least servers of its claim.
struct Extra {
  int32_t workers = 0;
  int32_t servers = 0;  // 0 where servers are without limit
  double merit = 0;
  int32_t share = 0;  // its index in the claim
};

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
std::optional<Surplus> SurplusOf(std::vector<Claim> claims, const ClusterCapacity& capacity);

}  // namespace stepcast
