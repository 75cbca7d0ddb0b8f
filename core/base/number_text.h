// A quantity in a sentence.
#pragma once

#include <string>

namespace stepcast {

// Four significant digits, and all before the point: `0.07136`, `680.5`, `13409`. An exponent only
// below 1e-4, and from 1e15 on.
std::string NumberText(double value);

}  // namespace stepcast
