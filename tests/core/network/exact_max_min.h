// Max-min fair rates by progressive filling, in exact rationals (ICPE 2020, section 5, for any
// number of links).
//
// All flows are raised together until a link is full; the flows on it are done, and the others go
// on.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/core/network/exact.h"

namespace stepcast::testing {

// The rate of each flow, in the unit of the capacities. flows[f]: the links that flow f crosses, at
// least one.
std::vector<Exact> MaxMinRates(const std::vector<Exact>& capacities,
                               const std::vector<std::vector<size_t>>& flows);

}  // namespace stepcast::testing
