// A recommendation, as people read it.
#pragma once

#include <string>

#include "stepcast/recommendation.h"

namespace stepcast::client {

// The reason; then what was simulated, a row a choice, with servers, time, cost and broken
// constraints where there is any to tell. `->` marks the recommended choice, or the nearest to the
// constraints, `=` what is as good. Then what the marks mean, what was not simulated, and the
// warnings.
std::string RecommendationText(const RecommendWorkersResponse& response);

}  // namespace stepcast::client
