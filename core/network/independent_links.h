// Several hubs' links side by side, where no worker's own link can hold anything back: each is
// shared equally by its own flows.
//
// Its results are MaxMinNetwork's for workers whose capacity is that of all hubs together or more,
// to the tick.
// Usage, flows and threads: as MaxMinNetwork.
// Cost: O(log flows) for a flow that ends or starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/indexed_heap.h"
#include "core/base/time.h"
#include "core/network/equal_share_link.h"

namespace stepcast {

class IndependentLinks {
 public:
  using Flow = int32_t;

  IndependentLinks(int32_t hubs, size_t workers)
      : hubs_(hubs),
        links_(Index(hubs), EqualShareLink(workers)),
        is_touched_(Index(hubs), 0),
        ends_(Index(hubs)) {}

  // Functions as EqualShareLink's.
  void TakeEnded(Instant now, std::vector<Flow>& ended) {
    while (!ends_.empty() && ends_.TopKey() == now.ticks) {
      const int32_t hub = ends_.Pop();
      size_t at = ended.size();
      links_[Index(hub)].TakeEnded(now, ended);
      for (; at < ended.size(); ++at) ended[at] = ended[at] * hubs_ + hub;
      Touch(hub);
    }
  }

  void Start(Flow flow, Span work) {
    links_[Index(flow % hubs_)].Start(flow / hubs_, work);
    Touch(flow % hubs_);
  }

  Instant Settle(Instant now) {
    settle_cost_ = static_cast<int64_t>(touched_.size());
    for (const int32_t hub : touched_) {
      is_touched_[Index(hub)] = 0;
      ends_.Set(hub, links_[Index(hub)].Settle(now).ticks);
    }
    touched_.clear();
    return ends_.empty() ? kEndOfTime : Instant{ends_.TopKey()};
  }

  int64_t settle_cost() const { return settle_cost_; }
  int64_t CarriedBy(Instant now, int32_t hub) const { return links_[Index(hub)].CarriedBy(now, 0); }

 private:
  void Touch(int32_t hub) {
    if (std::exchange(is_touched_[Index(hub)], uint8_t{1}) == 0) touched_.push_back(hub);
  }

  const int32_t hubs_;
  std::vector<EqualShareLink> links_;  // by hub
  std::vector<uint8_t> is_touched_;    // by hub: a flow ended or started at this instant
  std::vector<int32_t> touched_;
  IndexedHeap ends_;  // hubs by next end; kEndOfTime where nothing is active
  int64_t settle_cost_ = 0;
};

}  // namespace stepcast
