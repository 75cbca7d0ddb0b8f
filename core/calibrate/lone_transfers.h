// The excess of lone transfers over their bytes' time: an upper bound of parsing.
//
// The first request that finds a link idle is served at once; where it ends before all others
// nothing was served before it.
// What it took, less its size at the link's speed, is its receiver's parsing, and whatever else a
// transfer's start costs: an upper bound of parsing, where no packets were captured (ICPE 2020,
// section 4, measures it with them).
// Threads: pure functions.
#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/calibrate/parsing_overhead_fit.h"
#include "core/model/profile.h"

namespace stepcast {

// Of both directions and all recorded steps, at the profile's bandwidth, up to
// kMaxParsingMeasurements; what would be below 0 is 0. Cost: O(n log n) in transfers and steps.
// Failure: what `stop` returns.
absl::StatusOr<std::vector<ParsingMeasurement>> MeasureLoneTransfers(const Profile& profile,
                                                                     StopCheck stop);

}  // namespace stepcast
