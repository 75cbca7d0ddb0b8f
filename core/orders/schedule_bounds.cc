#include "core/orders/schedule_bounds.h"

#include <algorithm>

namespace stepcast {

namespace {

double Ratio(Span part, Span whole) {
  return static_cast<double>(part.ticks) / static_cast<double>(whole.ticks);
}

}  // namespace

double ScheduleBounds::Efficiency(Span makespan) const {
  return upper == lower ? 1 : Ratio(upper - makespan, upper - lower);
}

double ScheduleBounds::SpeedupBound() const {
  return lower == Span{} ? 0 : Ratio(upper - lower, lower);
}

ScheduleBounds BoundsOf(std::span<const Span> time_by_resource) {
  ScheduleBounds bounds;
  for (const Span time : time_by_resource) {
    bounds.upper += time;
    bounds.lower = std::max(bounds.lower, time);
  }
  return bounds;
}

}  // namespace stepcast
