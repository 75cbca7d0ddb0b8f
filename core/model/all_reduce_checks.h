// The checks of what a scenario of collectives is given: groups of gradients by name, and measured
// collectives.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/all_reduce.h"
#include "core/model/profile.h"

namespace stepcast {

// Groups of gradients: the reason why a recording has none but its own, and the check of those that
// are given by name.

// True of what is summed over all workers: gradients that are all-reduced; of a profile of
// parameter servers, what its workers upload.
bool IsUploadedOrSummed(const Profile& profile, const Operation& operation);

// The reason why gradients cannot be grouped otherwise than they were recorded: the import of a
// trace knew the sizes of buckets alone, called each `bucket/B` and named no parameter. Empty: they
// can.
std::string WhyNoOtherBuckets(const Profile& profile);

// Faults unless every gradient is in one group, in graph order. `path`: of the groups. What is not
// known, or stands twice, is said of all; else what is missing; else the first that stands in
// another place.
void CheckGroups(const Profile& profile, const std::vector<GradientGroup>& groups,
                 const std::string& path, FaultList& faults);

// The points by kind, workers and size, and faults for what is no measurement; none of them where
// there are more than `max_points`. `are_used`: then there must be an all-reduce.
std::vector<MeasuredCollective> CheckedPoints(std::vector<MeasuredCollective> points, bool are_used,
                                              const std::string& path, int64_t max_points,
                                              FaultList& faults);

}  // namespace stepcast
