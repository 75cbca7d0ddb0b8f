// An obvious simulation of a JobGraph: every instant looks at everything.
//
// One network at most, of one hub, shared equally; no ranks, windows, or speeds. Work is counted in
// whole ticks as the engine's clocks count it, from a list of all rates there have been.
#pragma once

#include <vector>

#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"

namespace stepcast::testing {

// All chunks of steps that have ended, when every worker has ended so many steps.
std::vector<ChunkRecord> SimulateJobNaively(const JobGraph& job, const RunOptions& options);

}  // namespace stepcast::testing
