// The placement of a profile's operations on servers.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/profile.h"

namespace stepcast {

// The server of each operation, by its index; 0 for WORKER operations.
//
// On the recorded number of servers: as recorded. On another: each parameter goes, in graph order
// of its first operation that is not WORKER, to the server with the fewest bytes so far, the lowest
// index among equals (ICPE 2020, section 5, Fig. 23). A parameter's bytes are those of its
// downloads, or of its uploads if it has none. REQUIRES: servers >= 1; on another number than
// recorded every transfer and PARAMETER_SERVER operation names its parameter.
std::vector<int32_t> PlaceParameters(const Profile& profile, int32_t servers);

}  // namespace stepcast
