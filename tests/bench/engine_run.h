// One run of the engine, as the peers are run.
#pragma once

#include <vector>

#include "core/base/time.h"
#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "tests/bench/cost.h"
#include "tests/bench/job.h"

namespace stepcast::bench {

// The kept ends of steps go to `step_ends`, unless that is null.
Cost RunEngine(const Job& job, const RunOptions& options,
               std::vector<std::vector<Instant>>* step_ends = nullptr);

Cost RunEngine(const JobGraph& job, const RunOptions& options,
               std::vector<std::vector<Instant>>* step_ends = nullptr);

// The ends of all steps, by worker, in seconds.
std::vector<std::vector<double>> EngineStepEnds(const Job& job, RunOptions options);
std::vector<std::vector<double>> EngineStepEnds(const JobGraph& job, RunOptions options);

}  // namespace stepcast::bench
