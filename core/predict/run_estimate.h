// The estimate of the throughput from one run, and its standard error by that run alone.
//
// Warm-up: where it was not asked for, the run is cut where the standard error of what remains is
// least (MSER-5: White, "An effective truncation heuristic for bias reduction in simulation
// output", Simulation 1997, on means of five observations as White, Cobb and Spratt propose, WSC
// 2000); the observations are the times from mark to mark of the run's completion series, and at
// most half of them are dropped.
// Error: from batch means, kBatches of them, of equal numbers of completions (Law, Simulation
// Modeling and Analysis, 9.5.3).
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "core/engine/simulation.h"

namespace stepcast {

struct RunEstimate {
  double steps_per_second = 0;
  double standard_error = 0;  // of steps_per_second; 0 where the run is too short to say
  double warmup_seconds = 0;  // dropped, from the start of the run
};

inline constexpr int kBatches = 16;

// The number of the values that MSER-5 drops: a multiple of five, at most half of them. 0 for fewer
// than fifty.
size_t TruncationOf(const std::vector<double>& values);

// `automatic_warmup`: what the run was told to drop is the least, not all. REQUIRES:
// result.measured.
RunEstimate EstimateOf(const RunResult& result, bool automatic_warmup);

}  // namespace stepcast
