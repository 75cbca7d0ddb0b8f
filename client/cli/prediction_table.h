// Predictions and recommendations, as people read them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stepcast/prediction.h"
#include "stepcast/recommendation.h"

namespace stepcast::client {

// In words: `downlink of server 0`, `computation of the workers`.
std::string BottleneckText(Resource resource, int32_t parameter_server);

// A row a prediction, then each warning once, with the numbers of workers it is about; warnings that differ only in their numbers count as one. The
// row `marked`, by index, gets an arrow.
std::string PredictionTable(const std::vector<Prediction>& predictions, std::optional<size_t> marked = std::nullopt);

// The reason, then the curve with the recommended count marked.
std::string RecommendationText(const RecommendWorkersResponse& response);

}  // namespace stepcast::client
