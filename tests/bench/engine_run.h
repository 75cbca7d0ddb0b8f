// One run of the engine, as the peers are run.
#pragma once

#include <vector>

#include "core/base/time.h"
#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "tests/bench/cost.h"
#include "tests/bench/job.h"

namespace stepcast::bench {

// Where `step_ends` is not null, the kept ones go there.
Cost RunEngine(const Job& job, const RunOptions& options,
               std::vector<std::vector<Instant>>* step_ends = nullptr);

Cost RunEngine(const JobGraph& job, const RunOptions& options,
               std::vector<std::vector<Instant>>* step_ends = nullptr);

// The ends of all steps, by worker, in seconds.
std::vector<std::vector<double>> EngineStepEnds(const Job& job, RunOptions options);
std::vector<std::vector<double>> EngineStepEnds(const JobGraph& job, RunOptions options);

}  // namespace stepcast::bench
