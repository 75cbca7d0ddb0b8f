#include "client/cli/plot_axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace stepcast::client {

namespace {

// A step of 1, 2 or 5 times 10^exponent.
struct TickStep {
  double size = 1;
  int exponent = 0;
};

// The least step with which `fits`, at least 10^exponent.
template <typename Fits>
TickStep LeastStep(int exponent, const Fits& fits) {
  for (;; ++exponent) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double size =
          exponent < 0 ? digit / std::pow(10.0, -exponent) : digit * std::pow(10.0, exponent);
      if (fits(size)) return {size, exponent};
    }
  }
}

void AddTicks(PlotAxis& axis, const TickStep& step, double first, double last) {
  for (double i = first; i <= last; ++i) axis.ticks.push_back(i * step.size);
  axis.decimals = std::max(0, -step.exponent);
}

}  // namespace

std::string PlotAxis::TickText(double tick) const {
  std::array<char, 400> text{};  // holds the longest double
  std::snprintf(text.data(), text.size(), "%.*f", decimals, tick);
  return text.data();
}

PlotAxis AxisFromZero(double largest, int ticks_max) {
  constexpr double kLeast = 1e-6;
  constexpr int kLeastExponent = -7;
  PlotAxis axis;
  const double top = largest < kLeast ? 1 : largest;
  const TickStep step = LeastStep(
      kLeastExponent, [&](double size) { return std::ceil(top / size) <= ticks_max - 1; });
  AddTicks(axis, step, 0, std::ceil(top / step.size));
  axis.to = axis.ticks.back();
  return axis;
}

PlotAxis AxisOfCounts(int first, int last, int ticks_max) {
  PlotAxis axis;
  axis.from = first == last ? first - 1.0 : first;
  axis.to = first == last ? last + 1.0 : last;
  const auto ticks = [&](double size) {
    return std::floor(axis.to / size) - std::ceil(axis.from / size) + 1;
  };
  const TickStep step = LeastStep(0, [&](double size) { return ticks(size) <= ticks_max; });
  AddTicks(axis, step, std::ceil(axis.from / step.size), std::floor(axis.to / step.size));
  return axis;
}

}  // namespace stepcast::client
