// The place of an answered number of workers, or of servers, among those that were asked about: at
// an edge of them better ones may lie beyond.
#pragma once

#include <cstdint>

namespace stepcast {

// One of kOnlyFeasible, of which no other that was tried keeps the constraints, may be the largest
// or smallest, too.
enum class ChoiceEdge : uint8_t {
  kNone,
  kLargestAsked,
  kSmallestAsked,
  kOnlyChoice,
  kOnlyFeasible
};

}  // namespace stepcast
