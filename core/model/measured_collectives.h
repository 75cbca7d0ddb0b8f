// The check of measured collectives.
//
// Threads: a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/all_reduce.h"
#include "core/model/fault_list.h"

namespace stepcast {

// The points by kind, workers and size, and faults for what is no measurement; none of them where
// there are more than `max_points`. `are_used`: then there must be an all-reduce.
std::vector<MeasuredCollective> CheckedPoints(std::vector<MeasuredCollective> points, bool are_used,
                                              const std::string& path, int64_t max_points,
                                              FaultList& faults);

}  // namespace stepcast
