// Whole answers, from the request to the predictions, on one core and without anything known.
#pragma once

#include "core/model/profile.h"
#include "core/predict/throughput.h"
#include "tests/bench/registry.h"

namespace stepcast::bench {

// Units of a second, for rounds' values.
inline constexpr double kInSeconds = 1;
inline constexpr double kInMilliseconds = 1e3;

// A round's value is the processor's time of a prediction. The note: the widest interval.
Outcome TimePrediction(const Profile& profile, const ThroughputDraft& draft, double unit,
                       int rounds);

}  // namespace stepcast::bench
