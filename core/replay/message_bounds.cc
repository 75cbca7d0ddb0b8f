#include "core/replay/message_bounds.h"

#include <algorithm>
#include <cstddef>

namespace stepcast {

namespace {

// True if b lies on or above the line from a to c.
bool IsImplied(const ClockOrder& a, const ClockOrder& b, const ClockOrder& c) {
  using Wide = __int128;
  return static_cast<Wide>(b.most() - a.most()) * (c.early_ns - a.early_ns) >=
         static_cast<Wide>(c.most() - a.most()) * (b.early_ns - a.early_ns);
}

}  // namespace

std::vector<ClockOrder> TightestOrders(std::vector<ClockOrder> orders) {
  std::sort(orders.begin(), orders.end(), [](const ClockOrder& a, const ClockOrder& b) {
    if (a.early_ns != b.early_ns) return a.early_ns < b.early_ns;
    return a.late_ns != b.late_ns ? a.late_ns < b.late_ns : a.source < b.source;
  });
  std::vector<ClockOrder> hull;
  for (const ClockOrder& order : orders) {
    if (!hull.empty() && hull.back().early_ns == order.early_ns) continue;
    while (hull.size() >= 2 && IsImplied(hull[hull.size() - 2], hull.back(), order))
      hull.pop_back();
    hull.push_back(order);
  }
  return hull;
}

double HeightAt(const std::vector<ClockOrder>& hull, double early_ns) {
  const auto after = std::find_if(hull.begin(), hull.end(), [&](const ClockOrder& order) {
    return static_cast<double>(order.early_ns) >= early_ns;
  });
  if (after == hull.begin()) return static_cast<double>(hull.front().most());
  if (after == hull.end()) return static_cast<double>(hull.back().most());
  const ClockOrder& left = *(after - 1);
  const double share = (early_ns - static_cast<double>(left.early_ns)) /
                       static_cast<double>(after->early_ns - left.early_ns);
  return static_cast<double>(left.most()) +
         share * static_cast<double>(after->most() - left.most());
}

}  // namespace stepcast
