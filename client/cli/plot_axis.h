// An axis of a plot: what it spans, and where its ticks are.
#pragma once

#include <string>
#include <vector>

namespace stepcast::client {

struct PlotAxis {
  double from = 0;
  double to = 1;              // more than `from`
  std::vector<double> ticks;  // ascending, inside, their distance 1, 2 or 5 times a power of ten
  int decimals = 0;           // of the ticks

  // Where a value is: 0 at `from`, 1 at `to`.
  double Fraction(double value) const { return (value - from) / (to - from); }
  std::string TickText(double tick) const;
};

// The largest number an axis can reach.
inline constexpr double kAxisMax = 1e12;

// From 0 to the first tick that is not below `largest`, 1 where that is less than 1e-6; at most
// `ticks_max` ticks. REQUIRES: largest <= kAxisMax, ticks_max >= 3.
PlotAxis AxisFromZero(double largest, int ticks_max);

// From the first to the last count, or one further on either side where they are the same; ticks at
// whole numbers, at most `ticks_max`. REQUIRES: first <= last, ticks_max >= 3.
PlotAxis AxisOfCounts(int first, int last, int ticks_max);

}  // namespace stepcast::client
