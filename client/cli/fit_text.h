// A fitted parsing overhead, for people.
#pragma once

#include <string>

#include "stepcast/calibration.h"

namespace stepcast::client {

// Both coefficients with their intervals, what they leave unexplained, and how to use them; a
// warning where many measurements are 0.
std::string FitText(const FitParsingOverheadRequest& request,
                    const FitParsingOverheadResponse& response);

}  // namespace stepcast::client
