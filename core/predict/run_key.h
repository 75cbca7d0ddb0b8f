// The key of a run, as bytes: all that it depends on, so runs of equal keys are equal.
//
// Complete by construction: a scenario or options with one more field do not compile here until it
// is said whether a run depends on it.
// Threads: pure functions.
// Length: some 200 bytes, and the names of explicit priorities.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/model/scenario.h"
#include "core/model/simulation_options.h"

namespace stepcast {

// Of all runs of a scenario: its order and what fixes its ranks, the options that touch a run, the
// engine's version. Replications, precision, time budget and confidence level do not: they say how
// many runs are made and what is made of them.
std::string RunKeyPrefix(std::string_view profile_digest, const Scenario& scenario,
                         const SimulationOptions& options);

// Of the replication with that index.
std::string RunKeyOf(std::string_view prefix, int32_t replication);

}  // namespace stepcast
