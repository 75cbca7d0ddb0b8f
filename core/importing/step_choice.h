// The choice of recorded nodes and steps for a profile, in which every step runs every operation
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/importing/recorded_rows.h"

namespace stepcast {

struct StepChoice {
  std::vector<bool> nodes;            // parallel to the recorded ones
  std::vector<size_t> steps;          // indices, in their order
  std::vector<int32_t> rare_nodes;    // left out: at most half of the steps run them
  std::vector<size_t> partial_steps;  // left out: they lack a node that is kept
  std::string lacking;                // one such node of the first of those
};

// Leaves out each candidate that at most half of the steps ran, then each step that lacks one of
// the others. Cost: linear in the recorded times.
StepChoice ChooseSteps(const RecordedRows& rows, const std::vector<bool>& candidates);

}  // namespace stepcast
