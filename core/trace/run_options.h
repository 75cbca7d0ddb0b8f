// What the engine is told to run for a scenario: what Replications tells it for its first run.
#pragma once

#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/replications.h"

namespace stepcast {

// REQUIRES: scenario was resolved for this profile; `graph` is this scenario's.
RunOptions FirstRunOptions(const Profile& profile, const Scenario& scenario, const SimulationOptions& options, const RankedGraph& graph);

}  // namespace stepcast
