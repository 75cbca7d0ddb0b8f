// A virtual clock that runs at a link's level: it counts what each flow at that level gets done.
//
// A flow of work s that joins at virtual time v is done at v + s, however the level changes. The
// clock is anchored anew only at the end of an instant that changed its level, by V +=
// floor(elapsed * level). Where no level changes nothing is rounded twice. Threads: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/time.h"
#include "core/network/link_level.h"

namespace stepcast {

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
    virtual_anchor_ = VirtualAt(now);
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
