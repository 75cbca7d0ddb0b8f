// A model in the manner of Daydream: the graph of one worker, with one coarse operation for each
// tensor that travels.
//
// Source: Zhu et al.: "Daydream", ATC 2020, as dPRO (Hu et al., MLSys 2022, sections 2.2 and 7)
// describes it: a tensor takes its size over the bandwidth, in the graph of one worker; how it
// waits and is sent is not modelled. The bandwidth of one of several workers is left open there.
// Taken here: each has its W-th part of the server's link for itself, always, and its own link
// whole; no parsing, no switching between streams. Run by our engine. Threads: pure function.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/predict/throughput.h"

namespace stepcast {

struct CoarseTensorsAnswer {
  double steps_per_second = 0;  // of all workers together; infinite where a step takes no time
  SimulationStatistics simulation;
};

// REQUIRES: scenario was resolved for this profile and has one worker. Failure: as Simulate.
absl::StatusOr<CoarseTensorsAnswer> PredictByCoarseTensors(const Profile& profile,
                                                           const Scenario& scenario,
                                                           int32_t workers, StopCheck stop);

}  // namespace stepcast
