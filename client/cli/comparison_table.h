// Comparisons of models, as people read them.
#pragma once

#include <string>

#include "stepcast/comparison.h"

namespace stepcast::client {

// Examples per second, a row a number of workers and a column a model, each with its difference to
// the simulation; then why a model says nothing, and what the models were given.
std::string ComparisonText(const CompareModelsResponse& response);

}  // namespace stepcast::client
