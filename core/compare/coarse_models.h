// Models that know no contention, measured on one worker's recorded steps.
//
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/compare/analytic_models.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/predict/replications.h"
#include "core/predict/throughput.h"

namespace stepcast {

// The replay of the recorded steps, one after the other, by one worker, or by several that meet in
// collectives and so go through the same steps together.
struct RecordedRun {
  Span length;  // of all steps together
  SimulationStatistics simulation;
};

// REQUIRES: scenario was resolved for this profile, and has one worker or is of collectives;
// `ranked` is its graph.
// `trace` may be null. Failure: as Simulate.
absl::StatusOr<RecordedRun> RunRecordedSteps(const Profile& profile, const Scenario& scenario,
                                             const RankedGraph& ranked, TraceSink* trace,
                                             StopCheck stop);

// The inputs of coarse models: phases and totals of one worker's step in a scenario.
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

// A model in the manner of Daydream: the graph of one worker, with one coarse operation for each
// tensor that travels.
//
// Source: Zhu et al.: "Daydream", ATC 2020, as dPRO (Hu et al., MLSys 2022, sections 2.2 and 7)
// describes it: a tensor takes its size over the bandwidth, in the graph of one worker; how it
// waits and is sent is not modelled. The bandwidth of one of several workers is left open there.
// Taken here: each has its W-th part of the server's link for itself, always, and its own link
// whole; no parsing, no switching between streams. Run by our engine. Threads: pure function.
struct CoarseTensorsAnswer {
  double steps_per_second = 0;  // of all workers together; infinite where a step takes no time
  SimulationStatistics simulation;
};

// REQUIRES: scenario was resolved for this profile and has one worker. Failure: as Simulate.
absl::StatusOr<CoarseTensorsAnswer> PredictByCoarseTensors(const Profile& profile,
                                                           const Scenario& scenario,
                                                           int32_t workers, StopCheck stop);

}  // namespace stepcast
