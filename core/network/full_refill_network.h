// The links of one direction between workers and several servers, shared max-min fairly, in the
// plain form: every change of the set of active flows fills all links anew. It is what
// MaxMinNetwork is held equal to.
//
// A flow crosses its server's link and its worker's. Progressive filling over both (ICPE 2020,
// section 5, whose rule for two servers is the same but where one worker alone uses both) gives
// each link a level: the residual capacity, after the flows that other links hold back further,
// over the number of its other flows. The lowest level comes first, by whole units (LinkLevel),
// servers before workers.
//
// Numbers: a worker's level is rounded down to a unit, to at least one; a server's is an exact
// fraction, of which a worker's link is charged the whole units. A flow is held by its worker's
// link where that has fewer whole units, and is at its server's level otherwise. Flows at a
// server's level share that server's virtual clock (LevelClock). A held flow is anchored anew only
// at the end of an instant that changed its rate or made it held, by remaining -= floor(elapsed *
// rate). All end at the first tick at which their work is done. Where no worker's own link binds
// nothing is held, and all ends are those of EqualShareLink, to the tick. Usage and threads: as
// EqualShareLink. Flow f is worker f / servers to server f % servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/network/level_clock.h"
#include "core/network/link_level.h"

namespace stepcast {

class FullRefillNetwork {
 public:
  using Flow = int32_t;

  static constexpr int64_t kUnit = LinkLevel::kUnit;

  // One capacity a worker, in units of 1/kUnit of a server's link, at least 1.
  FullRefillNetwork(int32_t servers, std::vector<int64_t> worker_capacities);

  // As EqualShareLink.
  void TakeEnded(Instant now, std::vector<Flow>& ended);
  void Start(Flow flow, Span work);
  Instant Settle(Instant now);
  int64_t settle_cost() const { return settle_cost_; }
  int64_t CarriedBy(Instant now, int32_t server) const;

 private:
  enum class Place : uint8_t { kNew, kAtServer, kHeld };
  struct FlowState {
    Place place = Place::kNew;
    int64_t virtual_end = 0;  // at its server's level: on that clock
    int64_t remaining = 0;    // new or held: at anchor, in ticks of a whole server link
    Instant anchor;           // held
    int64_t rate = 0;         // held: in units
  };
  struct Link {
    int64_t residual = 0;
    int64_t flows = 0;  // not given a level yet
    LinkLevel level;    // without flows: holds back none
  };

  size_t ServerLink(Flow flow) const { return static_cast<size_t>(flow % servers_); }
  size_t WorkerLink(Flow flow) const {
    return static_cast<size_t>(servers_) + static_cast<size_t>(flow / servers_);
  }
  bool IsServer(size_t link) const { return link < static_cast<size_t>(servers_); }
  int64_t LevelOf(size_t link) const;
  int64_t RemainingAt(Flow flow, Instant now) const;
  Instant EndOf(Flow flow) const;

  // Progressive filling over all active flows; sets the level of every link.
  void Fill();
  void FreezeFlowsOfLowestLinks();
  void ApplyLevels(Instant now);

  const int32_t servers_;
  const std::vector<int64_t> worker_capacities_;
  std::vector<FlowState> flows_;
  std::vector<LevelClock> clocks_;  // by server
  std::vector<Flow> active_;        // ascending
  std::vector<Flow> waiting_;       // of Fill: without a level so far
  std::vector<Link> links_;         // of Fill: the servers', then the workers'
  std::vector<int64_t> carried_;    // by server: work of all flows started
  int64_t settle_cost_ = 0;
  Instant next_end_ = kEndOfTime;
  bool changed_ = false;
};

}  // namespace stepcast
