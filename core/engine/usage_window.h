// The shares of a run's counted time in which its lanes were used, and in which workers
// communicated without computing.
//
// It compares what had been done when the counted time ended with what had been done when it began;
// the engines add that up, each in its way, in whole ticks, so that no order of addition shows.
// Threads: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/engine/program.h"

namespace stepcast {

class UsageWindow {
 public:
  using Ticks = __int128;  // of all workers together: more than an int64 holds

  // The work done since the start of the run.
  struct Totals {
    std::vector<Ticks> by_lane;  // processors: computation of all workers; links: what they carried
                                 // for all workers
    Ticks exposed = 0;  // time with a transfer under way and no computation, of all workers
  };

  void Begin(Instant now, Totals totals) {
    begin_ = now;
    at_begin_ = std::move(totals);
  }
  void End(Instant now, Totals totals) {
    end_ = now;
    at_end_ = std::move(totals);
  }

  // By lane: processors: mean over workers; links: of the hub's. REQUIRES: begun and ended.
  std::vector<double> Utilization(const Lanes& lanes, int32_t workers) const {
    std::vector<double> fractions(static_cast<size_t>(lanes.count()), 0);
    if (end_ == begin_) return fractions;
    for (LaneIndex lane = 0; lane < lanes.count(); ++lane) {
      const auto i = static_cast<size_t>(lane);
      const double shares = lanes.IsLink(lane) ? 1 : static_cast<double>(workers);
      fractions[i] =
          static_cast<double>(at_end_.by_lane[i] - at_begin_.by_lane[i]) / Length() / shares;
    }
    return fractions;
  }
  // Mean over workers.
  double ExposedFraction(int32_t workers) const {
    if (end_ == begin_) return 0;
    return static_cast<double>(at_end_.exposed - at_begin_.exposed) / Length() /
           static_cast<double>(workers);
  }

 private:
  double Length() const { return static_cast<double>((end_ - begin_).ticks); }

  Instant begin_;
  Instant end_;
  Totals at_begin_;
  Totals at_end_;
};

}  // namespace stepcast
