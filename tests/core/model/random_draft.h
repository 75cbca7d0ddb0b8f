// Random valid profiles for tests.
#pragma once

#include <cstdint>

#include "core/model/profile.h"

namespace stepcast::testing {

// A valid draft that depends on `seed` alone: 2 to 21 operations of all resources (a transfer
// first), 1 to 3 servers, dependencies on earlier and, by renumbering, later operations, 1 to 4
// steps. Every operation has a parameter.
ProfileDraft RandomDraft(uint64_t seed);

}  // namespace stepcast::testing
