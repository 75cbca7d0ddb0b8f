// The links of one direction where each hub's serves one chunk at a time, whole, in the order of
// arrival.
//
// Chunks that arrive at the same instant go in ascending order of their workers; the next one is
// begun at the very instant at which the one before has ended. While it is served a chunk is an
// active flow of the inner network, the only one of its hub: so it shares its worker's link, as
// Inner has it, with what the same worker gets from other hubs at the time. One deep queue at
// the bottleneck gives this order, fair queues the equal shares. Usage, flows and threads: as
// EqualShareLink; a chunk is started when it arrives. Cost: of Inner, and O(1) a chunk, O(log
// arrivals) where several arrive at one instant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/time.h"

namespace stepcast {

template <typename Inner>
class FirstComeNetwork {
 public:
  using Flow = int32_t;

  FirstComeNetwork(int32_t hubs, size_t workers, Inner inner)
      : hubs_(hubs),
        inner_(std::move(inner)),
        lines_(Index(hubs)),
        waiting_(Index(hubs) * workers) {}

  void TakeEnded(Instant now, std::vector<Flow>& ended) {
    size_t at = ended.size();
    inner_.TakeEnded(now, ended);
    for (; at < ended.size(); ++at) {
      const int32_t hub = ended[at] % hubs_;
      lines_[Index(hub)].is_serving = false;
      free_.push_back(hub);
    }
  }

  void Start(Flow flow, Span work) {
    waiting_[Index(flow)] = {.work = work};
    arriving_.push_back(flow);
  }

  Instant Settle(Instant now) {
    // Ascending flows are ascending workers at each hub.
    if (arriving_.size() > 1) std::sort(arriving_.begin(), arriving_.end());
    for (const Flow flow : arriving_) Join(flow);
    for (const Flow flow : arriving_) ServeNext(flow % hubs_);
    for (const int32_t hub : free_) ServeNext(hub);
    arriving_.clear();
    free_.clear();
    return inner_.Settle(now);
  }

  int64_t settle_cost() const { return inner_.settle_cost(); }
  // The work of what has been served, not of what waits.
  int64_t CarriedBy(Instant now, int32_t hub) const { return inner_.CarriedBy(now, hub); }

 private:
  static constexpr Flow kNone = -1;

  struct Line {
    Flow first = kNone;  // waiting
    Flow last = kNone;
    bool is_serving = false;
  };
  struct Waiting {
    Span work;
    Flow behind = kNone;
  };

  void Join(Flow flow) {
    Line& line = lines_[Index(flow % hubs_)];
    if (line.first == kNone) {
      line.first = flow;
    } else {
      waiting_[Index(line.last)].behind = flow;
    }
    line.last = flow;
  }

  void ServeNext(int32_t hub) {
    Line& line = lines_[Index(hub)];
    if (line.is_serving || line.first == kNone) return;
    const Waiting& next = waiting_[Index(line.first)];
    inner_.Start(line.first, next.work);
    line.first = next.behind;
    line.is_serving = true;
  }

  const int32_t hubs_;
  Inner inner_;
  std::vector<Line> lines_;       // by hub
  std::vector<Waiting> waiting_;  // by flow
  std::vector<Flow> arriving_;    // at this instant
  std::vector<int32_t> free_;     // hubs that ended a chunk at this instant
};

}  // namespace stepcast
