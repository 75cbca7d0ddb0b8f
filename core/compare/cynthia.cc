#include "core/compare/cynthia.h"

#include <algorithm>

namespace stepcast {

double CynthiaInputs::NetworkUtilization() const {
  return busiest_server_share * 2 * transfer_seconds / (computation_seconds + 2 * transfer_seconds);
}

CynthiaInputs CynthiaInputs::Halved() const {
  CynthiaInputs halved = *this;
  halved.transfer_seconds /= 2;
  return halved;
}

double CynthiaStepsPerSecond(const CynthiaInputs& inputs, int32_t workers) {
  const double slowdown = std::max(1.0, workers * inputs.NetworkUtilization());
  return workers / (inputs.computation_seconds * slowdown + 2 * inputs.transfer_seconds);
}

}  // namespace stepcast
