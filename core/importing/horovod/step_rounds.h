// Steps in a recording that says of no step where it begins: every step uses every tensor once.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast {

// One use of a tensor.
struct TensorTurn {
  size_t tensor = 0;
  int64_t ready_ns = 0;
  int64_t end_ns = 0;
};

// A step: turns next to each other, none twice of a tensor.
struct StepRound {
  size_t first = 0;  // of the turns
  size_t count = 0;
  bool is_whole = false;  // it has each tensor
};

// The rounds of turns that are in the order of ready_ns, by which as many as can be are whole: of
// several such, those that begin with the first turn, then those in which least time passes
// between the first turn of a round and the last. REQUIRES: tensors below `tensors`, which is above
// 0.
std::vector<StepRound> RoundsOf(const std::vector<TensorTurn>& turns, size_t tensors);

}  // namespace stepcast
