// What a scenario's answer rests on that was neither recorded nor asked for, told to people.
#pragma once

#include <string>
#include <vector>

#include "core/model/scenario.h"

namespace stepcast {

struct Assumption {
  std::string field;    // its path in the scenario, `all_reduce.latency_seconds`
  std::string value;    // with its unit
  std::string message;  // a sentence

  friend bool operator==(const Assumption&, const Assumption&) = default;
};

// Those of the scenario's assumed values that it still has and that move its answer: what is
// between workers does not with one. The change of kind is the first.
std::vector<Assumption> AssumptionsOf(const Scenario& scenario);

// Adds those that are not among `told`.
void AddAssumptions(const Scenario& scenario, std::vector<Assumption>& told);

}  // namespace stepcast
