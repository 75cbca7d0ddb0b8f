// Links of any capacity, shared max-min fairly by flows that cross up to four of them: the general
// network, of which MaxMinNetwork is the fast case for hubs and workers.
//
// Every change of the set of active flows fills all links anew: progressive filling (ICPE 2020,
// section 5, whose rule for two hubs is the same but where one worker alone uses both) gives
// each link a level, the residual capacity after the flows that other links hold back further, over
// the number of its other flows. The lowest level comes first, by whole units (LinkLevel); of equal
// ones shared links before own ones.
//
// Numbers: an own link's level is rounded down to a unit, to at least one; a shared link's is an
// exact fraction, of which other links are charged the whole units. A flow is held by an own link
// that has fewer whole units than its shared ones, and is at the level of its lowest shared link
// otherwise. Flows at a shared link's level share that link's virtual clock (LevelClock). A held
// flow is anchored anew only at the end of an instant that changed its rate or made it held, by
// remaining -= floor(elapsed * rate). All end at the first tick at which their work is done. Where
// only one link of each path ever binds, and that is shared, all ends are those of EqualShareLink,
// to the tick. Usage and threads: as EqualShareLink. Cost: O(active flows x links) per change.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/time.h"
#include "core/network/link_level.h"

namespace stepcast {

// Index of a link of a PathNetwork.
using LinkIndex = int32_t;

// The links that a flow crosses, in any order, each once.
struct FlowPath {
  static constexpr size_t kMaxLinks = 4;

  std::array<LinkIndex, kMaxLinks> links{};
  int8_t count = 0;

  std::span<const LinkIndex> all() const { return {links.data(), static_cast<size_t>(count)}; }
};

class PathNetwork {
 public:
  using Flow = int32_t;

  static constexpr int64_t kUnit = LinkLevel::kUnit;

  struct Link {
    int64_t capacity =
        kUnit;              // in units of 1/kUnit of what a tick of work takes a tick of, above 0
    bool is_shared = true;  // by many flows; false: a worker's own
  };

  // Flow f is lane f % lanes of worker f / lanes; its path is paths[f].
  PathNetwork(int32_t lanes, std::vector<Link> links, std::vector<FlowPath> paths);
  // Hubs' links of kUnit and workers' own of the capacities given: flow f is worker f / hubs to hub
  // f % hubs.
  static PathNetwork Star(int32_t hubs, const std::vector<int64_t>& worker_capacities);

  // Functions as EqualShareLink's; CarriedBy: of all flows of that lane.
  void TakeEnded(Instant now, std::vector<Flow>& ended);
  void Start(Flow flow, Span work);
  Instant Settle(Instant now);
  int64_t settle_cost() const { return settle_cost_; }
  int64_t CarriedBy(Instant now, int32_t lane) const;

 private:
  enum class Place : uint8_t { kNew, kAtLink, kHeld };
  struct FlowState {
    Place place = Place::kNew;
    LinkIndex link = 0;       // at a link: which
    int64_t virtual_end = 0;  // at a link: on that link's clock
    int64_t remaining = 0;    // new or held: at anchor
    Instant anchor;           // held
    int64_t rate = 0;         // held: in units
  };
  struct LinkState {
    int64_t residual = 0;
    int64_t flows = 0;    // not given a level yet
    LinkLevel level;      // without flows: holds back none
    bool is_new = false;  // the level is of this round
  };

  int64_t LevelOf(LinkIndex link) const;
  int64_t RemainingAt(Flow flow, Instant now) const;
  Instant EndOf(Flow flow) const;

  // Progressive filling over all active flows; sets the level of every link.
  void Fill();
  void FreezeFlowsOfLowestLinks();
  void ApplyLevels(Instant now);

  const int32_t lanes_;
  const std::vector<Link> links_;
  const std::vector<FlowPath> paths_;  // by flow
  std::vector<FlowState> flows_;
  std::vector<LevelClock> clocks_;  // by link; of shared ones
  std::vector<Flow> active_;        // ascending
  std::vector<Flow> waiting_;       // of Fill: without a level so far
  std::vector<LinkState> states_;   // of Fill: by link
  std::vector<int64_t> carried_;    // by lane: work of all flows started
  int64_t settle_cost_ = 0;
  Instant next_end_ = kEndOfTime;
  bool changed_ = false;
};

}  // namespace stepcast
