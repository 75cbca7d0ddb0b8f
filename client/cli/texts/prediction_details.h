// The lines below the table of predictions, some of them only where they are asked for.
#pragma once

#include <string>

#include "client/cli/texts/prediction_table.h"

namespace stepcast::client {

// A row a prediction: its step, and what a worker computes of each pass in it. One line where no
// operation says which pass it belongs to.
std::string PassesText(const Predictions& predictions);

// A row a window of each prediction: its end, and the throughput in it.
std::string OverTimeText(const Predictions& predictions);

// The sentence on intervals, and on what more recorded steps would give with the most workers.
// Empty where they are of the simulation's chance alone.
std::string CertaintyText(const Predictions& predictions);

}  // namespace stepcast::client
