// The longest path through the chunks of a run, by looking at every pair of them.
#pragma once

#include <vector>

#include "core/base/time.h"
#include "core/engine/job_graph.h"
#include "core/engine/simulation.h"

namespace stepcast::testing {

// The most that the lengths of chunks come to of which each one could not begin before the one
// before it had ended: it depends on it, comes after it on its lane or in the sequence of
// collectives, or meets, directly or by the step's begin, who does. `chunks`: all of the steps. The
// time before a worker's start is the length of something that its first step waits for.
Span NaiveLongestPath(const JobGraph& job, const std::vector<Span>& start_offsets,
                      const std::vector<ChunkRecord>& chunks);

}  // namespace stepcast::testing
