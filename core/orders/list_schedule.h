// A list scheduler of the step that orders are judged by: its makespan in a given order is
// LeastStep::Makespan's, to the tick, at a small part of the cost.
//
// One worker and one step need no heap of events, no random numbers and no statistics: a lane is an
// end and a queue.
// The part behind a cut (an operation that waits for all before it and that all after it wait for,
// as the loss) takes as long in every order, so it is scheduled once.
// Cost: some 10 ns an operation before the cut.
// Threads: none; an object keeps its memory from one order to the next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/program.h"
#include "core/network/max_min_network.h"
#include "core/orders/least_step.h"
#include "core/orders/outstanding_downloads.h"

namespace stepcast {

class ListSchedule {
 public:
  // Borrows the step. Cost: linear. Failure: only what `stop` returns.
  static absl::StatusOr<ListSchedule> Make(const LeastStep& step, StopCheck stop);

  // The downloads, which an order numbers from 0; ascending.
  const std::vector<OpIndex>& downloads() const { return downloads_; }
  // Cost of each order: operations, and lanes looked at, in units of StopCheck.
  int64_t cost() const;
  // The time from the cut to the end; 0 without a cut.
  Span after_cut() const { return after_cut_; }
  // Operations before the cut, and the cut; all without one. Ascending.
  const std::vector<OpIndex>& scheduled() const { return scheduled_; }

  // kNever where it is more than `limit`. REQUIRES: every download once.
  Span Makespan(std::span<const int32_t> order, Span limit = kNever);

 private:
  // Transfers that have not been served, by place in the order.
  class Unserved {
   public:
    void Reset(size_t places);
    void Insert(size_t place);
    // -1: none.
    int32_t PopFirst();

   private:
    std::vector<uint64_t> words_;
    size_t first_ = 0;  // no bit below this word
  };
  // First come, first served.
  struct Line {
    std::vector<OpIndex> slots;
    size_t head = 0;
    size_t size = 0;
  };
  // Dependencies among the scheduled operations; numbers are places in scheduled_.
  struct Compact {
    std::vector<LaneIndex> lane;
    std::vector<int32_t> pending;
    std::vector<int32_t> first_dependent;  // one more than operations
    std::vector<OpIndex> dependents;
    std::vector<OpIndex> roots;
    std::vector<TransferWork> work;
    std::vector<Span> duration;
  };

  explicit ListSchedule(const LeastStep& step);

  // Schedules what follows the first cut once and for all, where there is one.
  absl::Status FindCut(StopCheck stop);
  void Schedule(std::vector<OpIndex> operations);
  Span RunAll(Span limit);
  void Prepare(std::span<const int32_t> order);
  Instant NextEnd() const;
  void TakeEnded(Instant now);
  void RunRounds(Instant now);
  void Complete(LaneIndex lane);
  void LineUp(OpIndex op, Instant now);
  void StartNext(LaneIndex lane, Instant now);
  void Start(LaneIndex lane, OpIndex op, Instant now);
  void Settle(Instant now);
  bool IsDownlink(LaneIndex lane) const {
    return lane >= first_connection_ && lane < first_uplink_;
  }

  const LeastStep& step_;
  const LaneIndex lanes_;
  const int32_t servers_;
  const LaneIndex first_connection_;
  const LaneIndex first_uplink_;
  std::optional<MaxMinNetwork>
      idle_network_;  // none where every connection has all of its server's link
  std::vector<OpIndex> downloads_;
  std::vector<OpIndex> scheduled_;
  Compact compact_;
  std::vector<OpIndex> download_places_;  // of downloads_, in compact_
  Span after_cut_;
  Span computations_;  // of the worker, all together

  // State of the order at hand.
  std::vector<int32_t> pending_;
  std::vector<int32_t> service_;  // that a transfer comes to next
  std::vector<int32_t> place_in_order_;
  std::vector<OpIndex> op_at_place_;
  std::vector<OpIndex> running_;         // by lane; -1: idle
  std::vector<Instant> end_;             // by lane
  std::vector<Line> lines_;              // by lane
  std::vector<Unserved> unserved_;       // by server
  std::vector<MaxMinNetwork> networks_;  // down, up; empty without idle_network_
  std::array<Instant, 2> network_end_;
  std::array<bool, 2> touched_{};
  std::vector<int32_t> ended_;
  std::vector<LaneIndex> completed_;
  std::vector<LaneIndex> free_;
  std::vector<OpIndex> ready_;
  std::vector<OpIndex> stopped_;
  Span computations_left_;
  size_t left_ = 0;
};

}  // namespace stepcast
