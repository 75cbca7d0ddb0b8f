// A hub's link that serves one chunk at a time, whole, in the order of arrival, and remembers when
// it did, so that a worker may send many chunks as one flow and be told afterwards when each ended.
//
// Chunks that follow each other without a gap go, one after the other, behind what waits when the
// one before has ended: between two instants at which a flow starts or ends the flows take turns, a
// chunk each, in an order that does not change. So the next end is known from sums, and the chunks
// until then are served in a loop without events. Ends are those of FirstComeNetwork where no
// worker's own link binds. Usage, flows and threads: as LoggedLink, but that Start gives the list
// that is to be filled with the flow's chunks. Cost: Settle O(active flows), O(1) a chunk. Memory:
// 16 bytes for each chunk of a worker's longest flow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/time.h"
#include "core/network/chunk_log.h"

namespace stepcast {

class LoggedFirstComeLink {
 public:
  using Flow = int32_t;

  using Chunks = ChunkLog;

  explicit LoggedFirstComeLink(size_t flows) : flows_(flows) {}

  void TakeEnded(Instant now, std::vector<Flow>& ended) {
    Advance(now);
    if (serving_ != kNone && end_ == now && flows_[Index(serving_)].left() == 0)
      ended.push_back(serving_);
  }

  // To be filled, with one chunk at least, before Settle. Chunks of the flow before are forgotten.
  Chunks& Start(Flow flow) {
    // A chunk that ends now is not behind itself.
    if (flow == serving_) EndServing();
    arriving_.push_back(flow);
    flows_[Index(flow)].Clear();
    return flows_[Index(flow)];
  }

  Instant Settle(Instant now) {
    Advance(now);
    if (serving_ != kNone && end_ == now) {
      const Flow flow = EndServing();
      if (flows_[Index(flow)].left() > 0) arriving_.push_back(flow);
    }
    if (arriving_.size() > 1) std::sort(arriving_.begin(), arriving_.end());
    for (const Flow flow : arriving_) Join(flow);
    arriving_.clear();
    if (serving_ == kNone) ServeNext(now);
    settle_cost_ = std::exchange(served_, 0) + static_cast<int64_t>(line_.size() - first_);
    return serving_ == kNone ? kEndOfTime : NextEnd();
  }

  // Flows that the last Settle looked at, and chunks that were served since the one before.
  int64_t settle_cost() const { return settle_cost_; }

  // Serves until `now`, before which no flow ends or starts: what follows tells of that instant.
  void CatchUp(Instant now) { Advance(now); }
  bool IsActive(Flow flow) const { return flow == serving_ || flows_[Index(flow)].left() > 0; }
  int64_t CarriedBy(Instant now) const {
    return carried_ + (serving_ == kNone ? 0 : (now - begin_).ticks);
  }
  Span CarriedOf(Flow flow, Instant now) const {
    const Span served = flows_[Index(flow)].WorkOfServed();
    return flow == serving_ ? served - (end_ - now) : served;
  }

  using Reader = ChunkLog::Reader;
  Reader Read(Flow flow) const { return flows_[Index(flow)].Read(); }

 private:
  static constexpr Flow kNone = -1;
  // Chunks that are served without anybody looking: a fraction of a millisecond.
  static constexpr int64_t kMostAtOnce = 16'384;

  Flow EndServing() {
    carried_ += (end_ - begin_).ticks;
    return std::exchange(serving_, kNone);
  }

  void Join(Flow flow) { line_.push_back(flow); }

  void ServeNext(Instant now) {
    if (first_ == line_.size()) return;
    serving_ = line_[first_++];
    // The line is cut when as many have left it as are in it.
    if (2 * first_ > line_.size() + flows_.size()) {
      line_.erase(line_.begin(), line_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    Chunks& chunks = flows_[Index(serving_)];
    begin_ = now;
    end_ = now + Span{chunks.WorkOfNext(1)};
    chunks.AddEnd(end_);
    ++served_;
  }

  // Serves all that ends before `now`; with what ends just then, others may arrive.
  void Advance(Instant now) {
    while (serving_ != kNone && end_ < now) {
      const Instant at = end_;
      const Flow flow = EndServing();
      if (flows_[Index(flow)].left() > 0) Join(flow);
      ServeNext(at);
    }
  }

  // The next end of a flow if nobody else comes: of the one with the fewest chunks left, of equals
  // the one that is served first. An earlier instant where that is very many chunks away.
  Instant NextEnd() const {
    const Chunks& served = flows_[Index(serving_)];
    if (served.left() == 0) return end_;
    size_t fewest = served.left();
    size_t last = line_.size();  // its place: that of whoever is served now is the last one
    for (size_t place = line_.size(); place-- > first_;) {
      const size_t left = flows_[Index(line_[place])].left();
      if (left > fewest) continue;
      fewest = left;
      last = place;
    }
    int64_t until = served.WorkOfNext(last == line_.size() ? fewest : fewest - 1);
    for (size_t place = first_; place < line_.size(); ++place)
      until += flows_[Index(line_[place])].WorkOfNext(place <= last ? fewest : fewest - 1);
    const auto chunks = static_cast<int64_t>(fewest * (line_.size() - first_ + 1));
    if (chunks > kMostAtOnce) until = std::max<int64_t>(1, until / chunks * kMostAtOnce);
    return end_ + Span{until};
  }

  std::vector<Chunks> flows_;
  std::vector<Flow> line_;  // who waits, from first_ on
  size_t first_ = 0;
  std::vector<Flow> arriving_;  // at this instant
  Flow serving_ = kNone;
  Instant begin_;  // of the chunk that is served
  Instant end_;
  int64_t carried_ = 0;  // by chunks that have ended
  int64_t served_ = 0;   // chunks, since the last Settle
  int64_t settle_cost_ = 0;
};

}  // namespace stepcast
