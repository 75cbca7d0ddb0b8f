// The links of one direction where each server's serves one chunk at a time, whole, in the order of
// arrival.
//
// Chunks that arrive at the same instant go in ascending order of their workers; the next one is
// begun at the very instant at which the one before has ended. While it is served a chunk is an
// active flow of the inner network, the only one of its server: so it shares its worker's link, as
// Inner has it, with what the same worker gets from other servers at the time. One deep queue at
// the bottleneck gives this order, fair queues the equal shares. Usage, flows and threads: as
// EqualShareLink; a chunk is started when it arrives. Cost: of Inner, and O(1) a chunk, O(log
// arrivals) where several arrive at one instant.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/time.h"

namespace stepcast {

template <typename Inner>
class FirstComeNetwork {
 public:
  using Flow = int32_t;

  FirstComeNetwork(int32_t servers, size_t workers, Inner inner)
      : servers_(servers),
        inner_(std::move(inner)),
        lines_(Index(servers)),
        waiting_(Index(servers) * workers) {}

  void TakeEnded(Instant now, std::vector<Flow>& ended) {
    size_t at = ended.size();
    inner_.TakeEnded(now, ended);
    for (; at < ended.size(); ++at) {
      const int32_t server = ended[at] % servers_;
      lines_[Index(server)].is_serving = false;
      free_.push_back(server);
    }
  }

  void Start(Flow flow, Span work) {
    waiting_[Index(flow)] = {.work = work};
    arriving_.push_back(flow);
  }

  Instant Settle(Instant now) {
    // Ascending flows are ascending workers at each server.
    if (arriving_.size() > 1) std::sort(arriving_.begin(), arriving_.end());
    for (const Flow flow : arriving_) Join(flow);
    for (const Flow flow : arriving_) ServeNext(flow % servers_);
    for (const int32_t server : free_) ServeNext(server);
    arriving_.clear();
    free_.clear();
    return inner_.Settle(now);
  }

  int64_t settle_cost() const { return inner_.settle_cost(); }
  // Of what has been served, not of what waits.
  int64_t CarriedBy(Instant now, int32_t server) const { return inner_.CarriedBy(now, server); }

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

  static size_t Index(int32_t i) { return static_cast<size_t>(i); }

  void Join(Flow flow) {
    Line& line = lines_[Index(flow % servers_)];
    if (line.first == kNone) {
      line.first = flow;
    } else {
      waiting_[Index(line.last)].behind = flow;
    }
    line.last = flow;
  }

  void ServeNext(int32_t server) {
    Line& line = lines_[Index(server)];
    if (line.is_serving || line.first == kNone) return;
    const Waiting& next = waiting_[Index(line.first)];
    inner_.Start(line.first, next.work);
    line.first = next.behind;
    line.is_serving = true;
  }

  const int32_t servers_;
  Inner inner_;
  std::vector<Line> lines_;       // by server
  std::vector<Waiting> waiting_;  // by flow
  std::vector<Flow> arriving_;    // at this instant
  std::vector<int32_t> free_;     // servers that ended a chunk at this instant
};

}  // namespace stepcast
