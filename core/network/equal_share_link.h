// A link that its active flows share equally: each of n gets 1/n.
//
// The link has a virtual clock that runs at 1/n, so a flow of work s that starts at virtual time v
// ends at v + s whatever happens to n, and a heap ordered by virtual end never changes (ICPE
// 2020, 3.1; the idea is that of fair queueing's virtual time). The clock is anchored anew only at
// the end of an instant that changed n, by V += floor(elapsed / n): the one rounding there is. A
// flow's end is a product, so it is exact. Usage: within an instant any number of End and Start,
// then one Settle, which returns when the next flow ends. Threads: none. Cost: O(log flows) per End
// and Start, O(1) else.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/indexed_heap.h"
#include "core/base/time.h"

namespace stepcast {

class EqualShareLink {
 public:
  using Flow = int32_t;

  // Flows are 0 .. flows-1, a worker each, at most once at a time.
  explicit EqualShareLink(size_t flows) : ends_(flows) {}

  // Appends every flow that ends now to `ended`. REQUIRES: now is what Settle returned last.
  void TakeEnded(Instant /*now*/, std::vector<Flow>& ended) {
    // They stay in the heap until the instant is settled: a worker whose next chunk follows at once
    // only gets another key there.
    ended_at_ = ends_.TopKey();
    if (ends_.HasOneTop()) {
      ended_.push_back(ends_.Top());
      ended.push_back(ends_.Top());
      return;
    }
    ends_.AppendTops(ended_);
    ended.insert(ended.end(), ended_.begin(), ended_.end());
  }

  // The flow becomes active at the instant that Settle closes. REQUIRES: work.ticks > 0.
  void Start(Flow flow, Span work) {
    starting_.emplace_back(flow, work);
    carried_ += work.ticks;
  }

  // Closes the instant `now`; returns when the next flow ends, kEndOfTime where none is active.
  Instant Settle(Instant now) {
    // An end is a product, so at one the clock shows just that.
    settled_ = ended_.empty() ? VirtualAt(now) : ended_at_;
    for (const auto& [flow, work] : starting_) ends_.Set(flow, settled_ + work.ticks);
    for (const Flow flow : ended_) {
      if (ends_.KeyOf(flow) == ended_at_) ends_.Remove(flow);
    }
    starting_.clear();
    ended_.clear();
    const auto active = static_cast<int64_t>(ends_.size());
    if (active != active_) {
      anchor_ = now;
      virtual_anchor_ = settled_;
      active_ = active;
    }
    return active_ == 0 ? kEndOfTime : anchor_ + Span{(ends_.TopKey() - virtual_anchor_) * active_};
  }

  // Links and flows that the last Settle looked at: what it cost.
  int64_t settle_cost() const { return 1; }

  // The history of the link while one flow alone used it, told at once: from `anchor` on
  // the flow is active, or none is.
  struct LoneUse {
    Instant anchor;
    int64_t virtual_anchor = 0;
    int64_t virtual_now = 0;  // where the flow at hand began; else the anchor's
    int64_t carried = 0;      // by flows that began
    Span work;                // of the flow at hand; 0: none is active
  };
  // REQUIRES, here and below: the instant is settled. One flow is active.
  Flow OnlyFlow() const { return ends_.Top(); }
  // The use as it is when the active flow ends; now, where none is. At most one is.
  LoneUse BeginLoneUse() const {
    const int64_t now = active_ == 0 ? virtual_anchor_ : ends_.TopKey();
    return {.anchor = anchor_, .virtual_anchor = virtual_anchor_, .virtual_now = now};
  }
  void EndLoneUse(Flow flow, const LoneUse& use) {
    active_ = use.work.ticks > 0 ? 1 : 0;
    if (active_ == 1) {
      ends_.Set(flow, use.virtual_now + use.work.ticks);
    } else {
      ends_.Remove(flow);
    }
    anchor_ = use.anchor;
    virtual_anchor_ = use.virtual_anchor;
    settled_ = use.virtual_now;
    carried_ += use.carried;
  }

  // Work carried until `now`, in ticks of the whole link. REQUIRES: the instant is settled; hub
  // is 0.
  int64_t CarriedBy(Instant now, int32_t /*hub*/) const {
    int64_t left = 0;
    const int64_t virtual_now = VirtualAt(now);
    ends_.ForEach([&](Flow, int64_t virtual_end) { left += virtual_end - virtual_now; });
    return carried_ - left;
  }

  // REQUIRES, here and below: the instant is settled.
  bool IsActive(Flow flow) const { return ends_.Contains(flow); }
  template <typename Visit>
  void ForEachActive(Visit visit) const {
    ends_.ForEach([&](Flow flow, int64_t) { visit(flow); });
  }
  // The clock's value. REQUIRES: now is not before the last instant that was settled, and no flow
  // has ended in between.
  int64_t VirtualAt(Instant now) const {
    return active_ == 0 ? virtual_anchor_ : virtual_anchor_ + (now - anchor_).ticks / active_;
  }
  // The clock's value at the instant that was settled last.
  int64_t settled() const { return settled_; }
  // The clock's last anchor: the instant since when it runs as it does, its value then, and the
  // number of flows that slow it down.
  Instant anchor() const { return anchor_; }
  int64_t virtual_anchor() const { return virtual_anchor_; }
  int64_t active() const { return active_; }

 private:
  IndexedHeap ends_;  // active flows by virtual end
  std::vector<std::pair<Flow, Span>> starting_;
  std::vector<Flow> ended_;  // at the instant at hand
  int64_t ended_at_ = 0;     // their virtual end
  int64_t settled_ = 0;
  Instant anchor_;
  int64_t virtual_anchor_ = 0;
  int64_t active_ = 0;  // in force since anchor_
  int64_t carried_ = 0;
};

}  // namespace stepcast
