#include "core/engine/step_scaling.h"

#include <array>
#include <utility>

#include "core/base/distributions.h"

namespace stepcast {

namespace {

constexpr size_t kQuantiles = size_t{1} << StepScaling::kQuantileBits;
constexpr auto kCount = static_cast<double>(kQuantiles);

// The middles of kQuantiles parts of equal probability of a standard normal distribution.
const std::array<double, kQuantiles>& StandardQuantiles() {
  static const auto* const quantiles = [] {
    auto* made = new std::array<double, kQuantiles>;
    for (size_t i = 0; i < kQuantiles; ++i) {
      (*made)[i] = NormalQuantile((static_cast<double>(i) + 0.5) / kCount);
    }
    return made;
  }();
  return *quantiles;
}

}  // namespace

StepScaling::StepScaling(std::vector<std::vector<double>> logarithms, double own_deviation,
                         double common_deviation, double shift)
    : quantiles_(Quantiles(own_deviation, static_cast<double>(kUnit) * std::exp(shift))),
      inverse_(std::move(logarithms)) {
  if (common_deviation > 0) common_ = Quantiles(common_deviation, 1);
  for (std::vector<double>& steps : inverse_) {
    for (double& step : steps) step = std::exp(-step);
  }
}

int64_t StepScaling::At(double own, double common, size_t recorded_worker, int32_t step) const {
  return Scale(static_cast<uint64_t>(own * kCount), static_cast<uint64_t>(common * kCount),
               recorded_worker, step);
}

std::vector<double> StepScaling::Quantiles(double deviation, double mean) {
  std::vector<double> quantiles;
  quantiles.reserve(kQuantiles);
  double sum = 0;
  for (const double standard : StandardQuantiles())
    sum += quantiles.emplace_back(std::exp(deviation * standard));
  for (double& quantile : quantiles) quantile *= mean * kCount / sum;
  return quantiles;
}

}  // namespace stepcast
