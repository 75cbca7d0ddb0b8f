// The speed of a worker, applied to what was recorded.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/base/time.h"

namespace stepcast {

// A recorded computation on a worker `speed` times as fast as the recorded one: not shortened to
// nothing, so that no step can take no time, and not past the end of time. REQUIRES: speed > 0.
inline Span AtSpeed(Span recorded, double speed) {
  if (speed == 1 || recorded.ticks == 0) return recorded;
  return {std::llround(std::clamp(static_cast<double>(recorded.ticks) / speed, 1.0,
                                  static_cast<double>(kEndOfTime.ticks)))};
}

}  // namespace stepcast
