#include "core/compare/analytic_models.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>

namespace stepcast {

std::vector<double> ClosedNetworkStepsPerSecond(const PhaseSeconds& phases, int32_t max_workers) {
  assert(phases.Sum() > 0);
  const std::array<double, 2> links = {phases.downlink, phases.uplink};
  std::array<double, 2> present = {0,
                                   0};  // mean number of workers on each link, with one worker less
  std::vector<double> steps_per_second;
  for (int32_t workers = 1; workers <= max_workers; ++workers) {
    double step = phases.worker + phases.parameter_server;
    std::array<double, 2> on_link{};
    for (size_t i = 0; i < links.size(); ++i) step += on_link[i] = links[i] * (1 + present[i]);
    const double rate = workers / step;
    for (size_t i = 0; i < links.size(); ++i) present[i] = rate * on_link[i];
    steps_per_second.push_back(rate);
  }
  return steps_per_second;
}

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
