// Predictions, as people read them.
#pragma once

#include <string>
#include <vector>

#include "stepcast/prediction.h"

namespace stepcast::client {

// In words: `downlink of server 0`, `computation of the workers`.
std::string BottleneckText(Resource resource, int32_t parameter_server);

// `183.8 .. 191.2`; `-` where it has no width.
std::string IntervalText(const ConfidenceInterval& interval);
// What to call it in a title: `95% interval`.
std::string IntervalTitle(const std::vector<Prediction>& predictions);
// What to call the intervals of single runs: `95% of runs`; empty where a server does not say them.
std::string RunsTitle(const std::vector<Prediction>& predictions);
// Both regimes and how many of the runs fell into each: `736.1 in 5 of 8, 368.0 in 3 of 8`; empty
// where there are none.
std::string RegimesText(const std::vector<Regime>& regimes);

// A row a prediction, with the two regimes where any has them, then the warnings.
std::string PredictionTable(const std::vector<Prediction>& predictions);
// Each warning once, with the numbers of workers it is about; warnings that differ only in their
// numbers count as one.
std::string WarningsText(const std::vector<Prediction>& predictions);

}  // namespace stepcast::client
