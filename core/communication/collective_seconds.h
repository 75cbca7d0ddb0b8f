// The time of all collectives of a step together, and what it bounds.
//
// Threads: pure functions.
#pragma once

#include <vector>

#include "core/communication/all_reduce.h"
#include "core/model/scenario.h"
#include "core/model/scenario_edits.h"

namespace stepcast {

// Seconds of a step's collectives one after the other, below which no step is, with contention each
// at the faster of its rates; in cycles, of its all-reduces as one, where that takes less.
double CollectiveSeconds(const std::vector<PlannedCollective>& collectives,
                         const Scenario& scenario);

// Seconds of a step's collectives one after the other while nothing is computed: those, or more
// with contention.
double LoneCollectiveSeconds(const std::vector<PlannedCollective>& collectives,
                             const Scenario& scenario);

// Seconds by which a step is shorter at most where a change of links makes the scenario `changed`,
// and its collectives took `lone_seconds` one after the other; infinite where they have no times of
// their own: in cycles, expanded, with contention.
double MostSavedSeconds(const std::vector<PlannedCollective>& collectives, double lone_seconds,
                        const Scenario& changed);

// True if collectives go one after the other, each in the time that it has alone: then no step is
// shorter than they are. Not so in cycles, expanded, or several at once.
bool GoOneByOne(const Scenario& scenario);

// The links that collectives gain more of if they are twice as fast.
LinkPlace BindingLinks(const std::vector<PlannedCollective>& collectives, const Scenario& scenario);

}  // namespace stepcast
