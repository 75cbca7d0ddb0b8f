// The use of a run's lanes: what they have done so far, and its shares of the counted time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/engine/program.h"

namespace stepcast {

// The shares of a run's counted time in which its lanes were used, and in which workers
// communicated without computing.
//
// It compares what had been done when the counted time ended with what had been done when it began;
// the engines add that up, each in its way, in whole ticks, so that no order of addition shows.
// Threads: none.
class UsageWindow {
 public:
  using Ticks = __int128;  // of all workers together: more than an int64 holds

  // The work done since the start of the run.
  struct Totals {
    std::vector<Ticks> by_lane;  // processors: computation of all workers; links: what they carried
                                 // for all workers
    // Time with a transfer or a joint operation under way and no computation, of all workers.
    Ticks exposed = 0;
    // Time with a joint operation ready, none and no transfer under way and no computation: waiting
    // for other workers; of all of them.
    Ticks waiting = 0;
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
  // Mean over workers.
  double WaitingFraction(int32_t workers) const {
    if (end_ == begin_) return 0;
    return static_cast<double>(at_end_.waiting - at_begin_.waiting) / Length() /
           static_cast<double>(workers);
  }

 private:
  double Length() const { return static_cast<double>((end_ - begin_).ticks); }

  Instant begin_;
  Instant end_;
  Totals at_begin_;
  Totals at_end_;
};

// The work that a run's lanes have done so far, and the time in which workers communicated without
// computing, kept up event by event.
//
// Memory: some numbers a worker and a lane. Threads: none.
class UsageMeter {
 public:
  using Ticks = UsageWindow::Ticks;

  UsageMeter(int32_t workers, const Lanes& lanes)
      : after_compute_(lanes.after_compute()),
        first_joint_(lanes.first_joint()),
        workers_(static_cast<size_t>(workers)),
        computed_(static_cast<size_t>(lanes.count()), 0) {}

  // All workers are at the same, and what is told of the first is of all from now on.
  void Merge() { alike_ = static_cast<Ticks>(workers_.size()); }

  void OnComputationStart(int32_t worker, LaneIndex lane, Span duration) {
    computed_[Index(lane)] += alike_ * duration.ticks;
    workers_[Index(worker)].computing += static_cast<int32_t>(lane < after_compute_);
  }
  // The computation under way takes longer than was said when it started; negative: shorter.
  void OnComputationProlonged(LaneIndex lane, Span by) {
    computed_[Index(lane)] += alike_ * by.ticks;
  }
  void OnTransferStart(int32_t worker) { ++workers_[static_cast<size_t>(worker)].transfers; }
  // A joint operation is ready on the worker.
  void OnJointReady(int32_t worker) { ++workers_[Index(worker)].ready; }
  // It begins, on every worker.
  void OnJointStart(int32_t worker) {
    --workers_[Index(worker)].ready;
    ++workers_[Index(worker)].transfers;
  }
  void OnChunkEnd(int32_t worker, LaneIndex lane) {
    Worker& state = workers_[static_cast<size_t>(worker)];
    state.transfers -= static_cast<int32_t>(lane >= first_joint_);
    state.computing -= static_cast<int32_t>(lane < after_compute_);
  }
  // Call when all of a worker's instant has happened.
  void OnSettled(int32_t worker, Instant now) {
    Worker& state = workers_[static_cast<size_t>(worker)];
    const bool exposed = state.transfers > 0 && state.computing == 0;
    // Without a branch, which nothing could foresee.
    const int64_t change = static_cast<int64_t>(exposed) - static_cast<int64_t>(state.exposed);
    exposed_ -= alike_ * static_cast<Ticks>(change * now.ticks);
    exposed_now_ += alike_ * change;
    state.exposed = exposed;
    const bool waiting = state.ready > 0 && state.transfers == 0 && state.computing == 0;
    if (waiting == state.waiting) return;
    waiting_ += alike_ * (waiting ? -now.ticks : now.ticks);
    waiting_now_ += alike_ * (waiting ? 1 : -1);
    state.waiting = waiting;
  }

  bool IsComputing(int32_t worker) const { return workers_[Index(worker)].computing > 0; }
  bool IsCommunicating(int32_t worker) const { return workers_[Index(worker)].transfers > 0; }
  // All computation begun on a lane so far, its end included.
  Ticks ComputedOn(LaneIndex lane) const { return computed_[static_cast<size_t>(lane)]; }

  // Time until `now` with a transfer under way and no computation, of all workers. exposed_ holds,
  // of each stretch, its end minus its start; of one that lasts, minus its start only.
  Ticks ExposedUntil(Instant now) const { return exposed_ + exposed_now_ * now.ticks; }
  // Time until `now` in which a worker waits for others, of all workers.
  Ticks WaitingUntil(Instant now) const { return waiting_ + waiting_now_ * now.ticks; }

 private:
  struct Worker {
    int32_t transfers = 0;  // under way, joint operations among them
    int32_t computing = 0;  // lanes at it
    int32_t ready = 0;      // joint operations that wait for other workers
    bool exposed = false;
    bool waiting = false;
  };

  const LaneIndex after_compute_;
  const LaneIndex first_joint_;
  std::vector<Worker> workers_;
  std::vector<Ticks> computed_;  // by lane
  Ticks alike_ = 1;              // workers that what is told is of
  Ticks exposed_ = 0;
  Ticks exposed_now_ = 0;
  Ticks waiting_ = 0;
  Ticks waiting_now_ = 0;
};

}  // namespace stepcast
