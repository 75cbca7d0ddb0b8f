// Cycles among operations that wait for each other, and what waits for some of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/model/profile.h"

namespace stepcast {

// One cycle of two or more operations, each waiting for the next and the last for the first; begins
// with its lowest index. Empty: there is none. Entries of waiting_for that are out of range, or the
// operation itself, are passed over: they are faults of their own. Cost: linear in operations and
// dependencies (Kahn, "Topological sorting of large networks", 1962).
std::vector<int32_t> FindDependencyCycle(const std::vector<Operation>& operations);

// By operation: it is one of `first`, or waits for one of them, however indirectly. REQUIRES: all
// entries are in range. Cost: linear.
std::vector<bool> AllThatWaitFor(std::vector<size_t> first,
                                 const std::vector<Operation>& operations);

}  // namespace stepcast
