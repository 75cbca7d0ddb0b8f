// The links of one direction between workers and several hubs, shared max-min fairly: what
// PathNetwork::Star does, to the tick, at a cost that does not grow with the network.
//
// MaxMinLevels keeps the level of every link and is asked only where a worker turned idle or busy
// on a hub: a chunk that follows another at the same instant changes no level. Ends stay in
// their heap until the instant is settled, so that such a chunk gives its flow another end and no
// more. Flows at a hub's level wait in a heap by virtual end, which a change of the level leaves
// alone (LevelClock); only flows that a worker's own link holds back, or does no longer, are
// touched one by one. Cost: O(log flows) for a flow that ends or starts, and what MaxMinLevels says
// where a pair of worker and hub turns idle or busy. Usage, flows and threads: as
// PathNetwork.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/indexed_heap.h"
#include "core/base/time.h"
#include "core/network/link_level.h"
#include "core/network/max_min_levels.h"

namespace stepcast {

class MaxMinNetwork {
 public:
  using Flow = int32_t;

  static constexpr int64_t kUnit = LinkLevel::kUnit;

  // One capacity a worker, in units of 1/kUnit of a hub's link, at least 1.
  MaxMinNetwork(int32_t hubs, const std::vector<int64_t>& worker_capacities);

  // Functions as EqualShareLink's.
  void TakeEnded(Instant now, std::vector<Flow>& ended);
  void Start(Flow flow, Span work);
  Instant Settle(Instant now);
  int64_t settle_cost() const { return settle_cost_; }
  int64_t CarriedBy(Instant now, int32_t hub) const;

 private:
  enum class Place : uint8_t { kIdle, kAtHub, kHeld };
  struct FlowState {
    int64_t remaining = 0;  // held: at anchor, in ticks of a whole hub link; starting: all of it
    Instant anchor;         // held
    int64_t rate = 0;       // held: in units
    Place place = Place::kIdle;
    bool is_busy = false;      // from Start to TakeEnded; `place` follows in Settle
    bool is_starting = false;  // from Start to Settle
    bool is_touched = false;   // ended or started at this instant
  };
  struct HubState {
    // The clock's virtual time, which an instant asks for several times; a level that begins at
    // `now` does not change it.
    int64_t VirtualAt(Instant now) {
      if (shown_at != now) Show(now, clock.VirtualAt(now));
      return shown;
    }
    void Show(Instant now, int64_t virtual_now) {
      shown = virtual_now;
      shown_at = now;
    }

    LevelClock clock;
    IndexedHeap ends;     // workers whose flow is at the hub's level, by virtual end
    int64_t carried = 0;  // work of all flows started
    int64_t shown = 0;    // by the clock at shown_at
    Instant shown_at;
    bool is_stale = false;
  };

  int32_t HubOf(Flow flow) const { return flow % hub_count_; }
  int32_t HeldSlot(Flow flow) const { return hub_count_ + flow; }
  int32_t WorkerOf(Flow flow) const { return flow / hub_count_; }
  // Its end in ends_ is to be found anew.
  void MarkStale(int32_t hub);
  void Touch(Flow flow);
  static int64_t HeldRemaining(const FlowState& state, Instant now);

  // All flows that end at a slot of ends_.
  void TakeEndedAt(int32_t slot, Instant now, std::vector<Flow>& ended);
  // True if a pair of worker and hub turned idle or busy.
  bool UpdateLevels();
  void ApplyLevels(Instant now);
  // Moves a flow under way to where the levels have it now.
  void PlaceFlow(Flow flow, Instant now);
  void PlaceStarting(Instant now);
  // Gives a flow its end, where the levels have it now.
  void Enter(Flow flow, Instant now);
  // Takes its end away.
  void Leave(Flow flow);
  void RefreshEnds();

  const int32_t hub_count_;
  MaxMinLevels levels_;
  std::vector<FlowState> flows_;
  std::vector<HubState> hubs_;
  IndexedHeap ends_;  // by tick: hubs by their next end, then held flows
  std::vector<Flow> touched_;
  std::vector<int32_t> stale_hubs_;
  // Scratch of TakeEnded; members only to keep their memory.
  std::vector<int32_t> ending_;  // of ends_
  std::vector<int32_t> ending_workers_;
  int64_t settle_cost_ = 0;
};

}  // namespace stepcast
