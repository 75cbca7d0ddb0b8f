// The rules a profile keeps.
#pragma once

#include <vector>

#include "core/base/error.h"
#include "core/model/profile.h"
#include "core/model/profile_limits.h"

namespace stepcast {

// Every rule that `draft` breaks, in the order of its fields, each with its path; empty: it is
// valid. Faults beyond the first thousand are dropped.
//
// Rules: at least one operation and one step; names unique and not empty; resources known; indices
// in range; no cycle (its operations are named); transfers with a size, nothing else with one; no
// negative size, time or overhead; no end before its start; steps as long as the graph; every
// number finite; some recorded time or transfer in each step, so that no step takes no time; all
// limits. Cost: linear in the draft's size.
std::vector<Fault> ValidateProfile(const ProfileDraft& draft, const ProfileLimits& limits);

}  // namespace stepcast
