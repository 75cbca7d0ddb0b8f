// The replay of one worker through the recorded steps, one after the other: models that know no
// contention are measured on it.
//
// Threads: pure function.
#pragma once

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/predict/replications.h"
#include "core/predict/throughput.h"

namespace stepcast {

struct RecordedRun {
  Span length;  // of all steps together
  SimulationStatistics simulation;
};

// REQUIRES: scenario was resolved for this profile and has one worker; `ranked` is its graph.
// `trace` may be null. Failure: as Simulate.
absl::StatusOr<RecordedRun> RunRecordedSteps(const Profile& profile, const Scenario& scenario,
                                             const RankedGraph& ranked, TraceSink* trace,
                                             StopCheck stop);

}  // namespace stepcast
