// The inputs of coarse models: phases and totals of one worker's step in a scenario.
//
// Threads: pure function.
#pragma once

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/compare/closed_network.h"
#include "core/compare/cynthia.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/predict/throughput.h"

namespace stepcast {

struct CoarseProfile {
  PhaseSeconds phases;  // of simulated transfers: recorded ones hold waiting and parsing, too (ICPE
                        // 2020, section 2)
  CynthiaInputs cynthia;  // parsing on the worker is computation (3.2.1)
  SimulationStatistics simulation;
};

// Means over the recorded steps, gone through once, one after the other.
// REQUIRES: scenario was resolved for this profile and has one worker. Failure: as Simulate.
absl::StatusOr<CoarseProfile> MeasureCoarseProfile(const Profile& profile, const Scenario& scenario,
                                                   StopCheck stop);

}  // namespace stepcast
