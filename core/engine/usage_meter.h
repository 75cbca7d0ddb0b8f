// How much the lanes of a run were used in its counted time, and how long workers communicated without computing.
//
// Memory: some numbers a worker and a lane. Threads: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"
#include "core/engine/step_graph.h"

namespace stepcast {

class UsageMeter {
 public:
  using Ticks = __int128;  // of all workers together: more than an int64 holds

  UsageMeter(int32_t workers, LaneMap lanes)
      : lanes_(lanes), workers_(static_cast<size_t>(workers)), computed_(static_cast<size_t>(lanes.count()), 0) {}

  void OnComputationStart(int32_t worker, LaneIndex lane, Span duration) {
    computed_[static_cast<size_t>(lane)] += duration.ticks;
    if (lane == LaneMap::kWorker) workers_[static_cast<size_t>(worker)].computing = true;
  }
  void OnTransferStart(int32_t worker) { ++workers_[static_cast<size_t>(worker)].transfers; }
  void OnChunkEnd(int32_t worker, LaneIndex lane) {
    Worker& state = workers_[static_cast<size_t>(worker)];
    if (lanes_.IsConnection(lane)) {
      --state.transfers;
    } else if (lane == LaneMap::kWorker) {
      state.computing = false;
    }
  }
  // Call when all of a worker's instant has happened.
  void OnSettled(int32_t worker, Instant now) {
    Worker& state = workers_[static_cast<size_t>(worker)];
    const bool exposed = state.transfers > 0 && !state.computing;
    if (exposed == state.exposed) return;
    exposed_ += exposed ? -now.ticks : now.ticks;
    exposed_now_ += exposed ? 1 : -1;
    state.exposed = exposed;
  }

  // All computation begun on a lane so far, its end included.
  Ticks ComputedOn(LaneIndex lane) const { return computed_[static_cast<size_t>(lane)]; }

  // `used`: by lane, what has been done until now; processors: computation of all workers, connections: what the server's link has carried.
  void BeginCounting(Instant now, std::vector<Ticks> used) {
    begin_ = now;
    used_at_begin_ = std::move(used);
    exposed_at_begin_ = ExposedUntil(now);
  }
  void EndCounting(Instant now, std::vector<Ticks> used) {
    end_ = now;
    used_at_end_ = std::move(used);
    exposed_at_end_ = ExposedUntil(now);
  }

  // By lane: processors: mean over workers; connections: of the server's link. REQUIRES: counting has begun and ended.
  std::vector<double> Utilization() const {
    std::vector<double> fractions(computed_.size(), 0);
    if (end_ == begin_) return fractions;
    const auto counted = static_cast<double>((end_ - begin_).ticks);
    for (size_t lane = 0; lane < fractions.size(); ++lane) {
      const double shares = lanes_.IsConnection(static_cast<LaneIndex>(lane)) ? 1 : static_cast<double>(workers_.size());
      fractions[lane] = static_cast<double>(used_at_end_[lane] - used_at_begin_[lane]) / counted / shares;
    }
    return fractions;
  }
  // Share of the counted time in which a worker had a transfer under way and computed nothing, mean over workers.
  double ExposedFraction() const {
    if (end_ == begin_) return 0;
    return static_cast<double>(exposed_at_end_ - exposed_at_begin_) / static_cast<double>((end_ - begin_).ticks) /
           static_cast<double>(workers_.size());
  }

 private:
  struct Worker {
    int32_t transfers = 0;  // under way
    bool computing = false;
    bool exposed = false;
  };

  // exposed_ holds, of each stretch, its end minus its start; of one that lasts, minus its start only.
  Ticks ExposedUntil(Instant now) const { return exposed_ + static_cast<Ticks>(exposed_now_) * now.ticks; }

  const LaneMap lanes_;
  std::vector<Worker> workers_;
  std::vector<Ticks> computed_;  // by lane
  Ticks exposed_ = 0;
  int64_t exposed_now_ = 0;
  Instant begin_;
  Instant end_;
  std::vector<Ticks> used_at_begin_;
  std::vector<Ticks> used_at_end_;
  Ticks exposed_at_begin_ = 0;
  Ticks exposed_at_end_ = 0;
};

}  // namespace stepcast
