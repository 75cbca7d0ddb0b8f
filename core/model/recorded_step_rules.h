// The rules of a profile's recorded steps.
#pragma once

#include "core/model/fault_list.h"
#include "core/model/profile.h"
#include "core/model/profile_limits.h"

namespace stepcast {

// Adds a fault for each rule of ValidateProfile that a step breaks.
// Cost: linear in the recorded times; a number of them above its limit is one fault and costs
// nothing more.
void CheckSteps(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults);

}  // namespace stepcast
