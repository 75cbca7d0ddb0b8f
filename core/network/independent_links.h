// Several servers' links side by side, where no worker's own link can hold anything back: each is
// shared equally by its own flows.
//
// What MaxMinNetwork says of workers whose capacity is that of all servers together or more, to the
// tick. Usage, flows and threads: as MaxMinNetwork. Cost: O(log flows) for a flow that ends or
// starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/indexed_heap.h"
#include "core/base/time.h"
#include "core/network/equal_share_link.h"

namespace stepcast {

class IndependentLinks {
 public:
  using Flow = int32_t;

  IndependentLinks(int32_t servers, size_t workers)
      : servers_(servers),
        links_(Index(servers), EqualShareLink(workers)),
        is_touched_(Index(servers), 0),
        ends_(Index(servers)) {}

  // As EqualShareLink.
  void TakeEnded(Instant now, std::vector<Flow>& ended) {
    while (!ends_.empty() && ends_.TopKey() == now.ticks) {
      const int32_t server = ends_.Pop();
      size_t at = ended.size();
      links_[Index(server)].TakeEnded(now, ended);
      for (; at < ended.size(); ++at) ended[at] = ended[at] * servers_ + server;
      Touch(server);
    }
  }

  void Start(Flow flow, Span work) {
    links_[Index(flow % servers_)].Start(flow / servers_, work);
    Touch(flow % servers_);
  }

  Instant Settle(Instant now) {
    settle_cost_ = static_cast<int64_t>(touched_.size());
    for (const int32_t server : touched_) {
      is_touched_[Index(server)] = 0;
      ends_.Set(server, links_[Index(server)].Settle(now).ticks);
    }
    touched_.clear();
    return ends_.empty() ? kEndOfTime : Instant{ends_.TopKey()};
  }

  int64_t settle_cost() const { return settle_cost_; }
  int64_t CarriedBy(Instant now, int32_t server) const {
    return links_[Index(server)].CarriedBy(now, 0);
  }

 private:
  static size_t Index(int32_t i) { return static_cast<size_t>(i); }

  void Touch(int32_t server) {
    if (std::exchange(is_touched_[Index(server)], uint8_t{1}) == 0) touched_.push_back(server);
  }

  const int32_t servers_;
  std::vector<EqualShareLink> links_;  // by server
  std::vector<uint8_t> is_touched_;    // by server: a flow ended or started at this instant
  std::vector<int32_t> touched_;
  IndexedHeap ends_;  // servers by next end; kEndOfTime where nothing is active
  int64_t settle_cost_ = 0;
};

}  // namespace stepcast
