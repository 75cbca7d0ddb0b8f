// The rules of a profile's graph.
#pragma once

#include "core/model/fault_list.h"
#include "core/model/profile.h"
#include "core/model/profile_limits.h"

namespace stepcast {

// Adds a fault for each rule of ValidateProfile that an operation, or the graph of them all,
// breaks. Cost: linear in operations and dependencies; a number of them above its limit is one
// fault and costs nothing more.
void CheckOperations(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults);

}  // namespace stepcast
