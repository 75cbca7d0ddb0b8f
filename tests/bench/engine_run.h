// One run of the engine, as the peers are run.
#pragma once

#include <vector>

#include "core/engine/simulation.h"
#include "core/engine/step_graph.h"
#include "tests/bench/cost.h"

namespace stepcast::bench {

Cost RunEngine(const StepGraph& graph, const RunOptions& options);

// The ends of all steps, by worker, in seconds.
std::vector<std::vector<double>> EngineStepEnds(const StepGraph& graph, RunOptions options);

}  // namespace stepcast::bench
