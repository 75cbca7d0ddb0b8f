// The max-min level of a link: the rate of each of the flows that it alone holds back, its residual
// capacity over their number.
//
// Capacities are integers in units of 1/kUnit of a hub's link, so sums do not depend on their
// order; the level itself is an exact fraction.
// Products with a level are rounded where they become ticks, and only there.
// Threads: a value.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "core/base/time.h"

namespace stepcast {

struct LinkLevel {
  // (lcm of 1..16)^2: what two fillings in a row divide by up to 16 comes out even.
  static constexpr int64_t kUnit = int64_t{720720} * 720720;
  // Whole() of a link that holds back no flow: more than any capacity, and 256 of them still fit an
  // int64.
  static constexpr int64_t kUnbounded = int64_t{1} << 50;

  int64_t residual = kUnit;
  int64_t flows = 0;

  // The speed of one that advances by so many units in the time of kUnit.
  static constexpr LinkLevel OfUnits(int64_t units) { return {.residual = units, .flows = 1}; }

  // Rounded down to a unit.
  int64_t Whole() const { return flows == 0 ? kUnbounded : residual / flows; }

  // Ticks of a hub's whole link that a flow gets done: floor(elapsed * level); nothing where
  // there is no flow.
  int64_t WorkIn(Span elapsed) const {
    if (flows == 0) return 0;
    if (residual == kUnit) return elapsed.ticks / flows;
    return static_cast<int64_t>(static_cast<Wide>(elapsed.ticks) * static_cast<Wide>(residual) /
                                PerUnit());
  }

  // The first span in which `work` is done, at most until kEndOfTime from the start of time.
  // REQUIRES: flows > 0, residual > 0, work >= 0.
  Span TimeFor(int64_t work) const {
    assert(flows > 0 && residual > 0);
    const auto most = static_cast<Wide>(kEndOfTime.ticks);
    if (residual == kUnit)
      return {
          static_cast<int64_t>(std::min(static_cast<Wide>(work) * static_cast<Wide>(flows), most))};
    const auto divisor = static_cast<Wide>(residual);
    return {static_cast<int64_t>(
        std::min((static_cast<Wide>(work) * PerUnit() + divisor - 1) / divisor, most))};
  }

  // Equality of the values; residual / flows need not be reduced.
  friend bool operator==(const LinkLevel& a, const LinkLevel& b) {
    return (a.flows == 0) == (b.flows == 0) && a.residual * b.flows == b.residual * a.flows;
  }

 private:
  using Wide = unsigned __int128;

  Wide PerUnit() const { return static_cast<Wide>(flows) * static_cast<Wide>(kUnit); }
};

// A virtual clock that runs at a link's level: it counts what each flow at that level gets done.
//
// A flow of work s that joins at virtual time v is done at v + s, however the level changes. The
// clock is anchored anew only at the end of an instant that changed its level, by V +=
// floor(elapsed * level). Where no level changes nothing is rounded twice. Threads: none.
class LevelClock {
 public:
  int64_t VirtualAt(Instant now) const { return virtual_anchor_ + level_.WorkIn(now - anchor_); }

  // The first tick at which the clock shows `virtual_time` at the present level, at most
  // kEndOfTime. REQUIRES: the level has flows.
  Instant InstantOf(int64_t virtual_time) const {
    return {std::min((anchor_ + level_.TimeFor(virtual_time - virtual_anchor_)).ticks,
                     kEndOfTime.ticks)};
  }

  void SetLevel(Instant now, const LinkLevel& level) {
    if (level == level_) return;
    SetLevelAt(now, VirtualAt(now), level);
  }
  // The same where it is known to be another level, and what the clock shows. REQUIRES:
  // virtual_now == VirtualAt(now).
  void SetLevelAt(Instant now, int64_t virtual_now, const LinkLevel& level) {
    assert(virtual_now == VirtualAt(now));
    virtual_anchor_ = virtual_now;
    anchor_ = now;
    level_ = level;
  }

  const LinkLevel& level() const { return level_; }

 private:
  LinkLevel level_;  // in force since anchor_; without flows the clock stands still
  Instant anchor_;
  int64_t virtual_anchor_ = 0;
};

}  // namespace stepcast
