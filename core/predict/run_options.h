// The run that the engine makes for a scenario.
#pragma once

#include <cstdint>

#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"

namespace stepcast {

// Of the replication with that index, from 0, on the fastest path there is.
//
// REQUIRES: scenario and options were resolved for this profile.
RunOptions RunOptionsOf(const Profile& profile, const Scenario& scenario,
                        const SimulationOptions& options, int32_t replication);

}  // namespace stepcast
