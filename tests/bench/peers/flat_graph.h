// A step's graph in arrays of a peer's own, so that no peer pays for the engine's accessors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/engine/program.h"

namespace stepcast::bench {

struct FlatGraph {
  explicit FlatGraph(const Program& graph);

  size_t size() const { return lane.size(); }

  int32_t lanes = 0;  // a worker's
  int32_t steps = 0;  // recorded
  std::vector<int32_t> lane;
  std::vector<int32_t> dependency_count;
  std::vector<int32_t> roots;
  std::vector<int32_t> dependents;
  std::vector<int32_t> first_dependent;  // size() + 1 entries
  std::vector<int32_t> operations_on;    // by lane
  // Time alone: of a computation as recorded, of a transfer at the link's full speed. Step-major.
  std::vector<Span> alone;
};

}  // namespace stepcast::bench
