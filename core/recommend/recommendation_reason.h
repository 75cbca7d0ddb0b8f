// A recommendation in words: one plain sentence that names the numbers.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/predict/throughput.h"
#include "core/recommend/recommendation.h"

namespace stepcast {

// Why frontier[chosen] is recommended: its throughput, speed-up and efficiency, what the objective compares, what one worker more would change, and
// the bottleneck. Where throughput falls beyond the highest, by more than the intervals and a twentieth of a percent, it says so.
std::string ReasonFor(const std::vector<Prediction>& frontier, size_t chosen, const RecommendationQuery& query);

// Which constraint no count keeps, which count comes nearest (the fewest workers of several), and how much it lacks.
// REQUIRES: no count keeps query.min_scaling_efficiency; frontier is not empty.
std::string InfeasibleReasonFor(const std::vector<Prediction>& frontier, const RecommendationQuery& query);

}  // namespace stepcast
