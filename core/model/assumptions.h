// The assumptions of a scenario's answer, told to people: values neither recorded nor asked for.
#pragma once

#include <vector>

#include "core/model/job_change.h"
#include "core/model/scenario.h"

namespace stepcast {

// Values assumed in the scenario that it still has and that move its answer: what is between
// workers does not with one; and those of the job's change. The change of kind is the first.
std::vector<Assumption> AssumptionsOf(const Scenario& scenario);

// Adds those that are not among `told`.
void AddAssumptions(const Scenario& scenario, std::vector<Assumption>& told);

}  // namespace stepcast
