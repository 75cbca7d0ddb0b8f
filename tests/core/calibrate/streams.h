// Streams of one worker on one link, served by the engine: what recordings are made of whose
// settings are known.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/calibrate/recorded_phase.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast::testing {

struct StreamRequest {
  int64_t start_ns = 0;
  int64_t size_bytes = 0;
  int64_t end_ns = 0;
};

// As a recording would show them, by start, of those requested at once in the order given.
RecordedPhase PhaseFrom(const std::vector<StreamRequest>& requests);

// The times at which the engine ends them, in nanoseconds, at a byte a nanosecond: a chain of
// computations requests each at its time. REQUIRES: ascending starts.
std::vector<double> EngineEnds(const std::vector<StreamRequest>& requests,
                               const ScenarioDraft& scenario, TransferOrder order);

// The same with the ends as recorded, each off by a normally distributed share of what its stream
// took, of that standard deviation.
RecordedPhase RecordedByEngine(const std::vector<StreamRequest>& requests,
                               const ScenarioDraft& scenario, double noise, Random& random);

// A profile of downloads only, with a step a phase. REQUIRES: phases are of the same sizes, in the
// order of operations.
Profile ProfileOf(const std::vector<std::vector<StreamRequest>>& steps, double bytes_per_second);

}  // namespace stepcast::testing
