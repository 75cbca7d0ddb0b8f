// An equally shared link that remembers how its virtual clock ran, so that a worker may send many
// chunks as one flow and be told afterwards when each of them ended.
//
// Chunks that follow each other without a gap keep their worker active, so they change nothing for
// anybody else: their virtual ends are sums, known from the start, and the log of the clock's
// anchors turns each into the very instant at which EqualShareLink would have ended it. Cost: as
// EqualShareLink for a flow, whatever the number of its chunks; TimeOf O(log anchors passed).
// Memory: the anchors since the oldest flow that is active. Threads: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/time.h"
#include "core/network/equal_share_link.h"

namespace stepcast {

class LoggedLink {
 private:
  struct Anchor {
    Instant at;
    int64_t virtual_at = 0;
    int64_t active = 0;
  };

 public:
  using Flow = EqualShareLink::Flow;

  explicit LoggedLink(size_t flows) : link_(flows), begins_(flows) { log_.push_back({}); }

  // Functions as EqualShareLink's. A flow that has ended can be asked about until it starts again.
  void TakeEnded(Instant now, std::vector<Flow>& ended) { link_.TakeEnded(now, ended); }
  void Start(Flow flow, Span work) {
    link_.Start(flow, work);
    starting_.push_back(flow);
  }
  Instant Settle(Instant now) {
    // Before flows that start become active: where they begin is not known yet.
    if (log_.size() >= trim_at_) Trim();
    const Instant next = link_.Settle(now);
    NoteAnchor();
    for (const Flow flow : starting_) begins_[static_cast<size_t>(flow)] = BeginNow();
    starting_.clear();
    return next;
  }
  // See EqualShareLink: its instants while nobody but one flow uses it are not settled one by one.
  using LoneUse = EqualShareLink::LoneUse;
  int64_t active() const { return link_.active(); }
  Flow OnlyFlow() const { return link_.OnlyFlow(); }
  LoneUse BeginLoneUse() const { return link_.BeginLoneUse(); }
  void EndLoneUse(Flow flow, const LoneUse& use) {
    link_.EndLoneUse(flow, use);
    NoteAnchor();
    begins_[static_cast<size_t>(flow)] = BeginNow();
  }
  bool IsActive(Flow flow) const { return link_.IsActive(flow); }
  int64_t CarriedBy(Instant now) const { return link_.CarriedBy(now, 0); }
  int64_t settle_cost() const { return link_.settle_cost(); }
  // Nothing: the clock tells of any instant.
  void CatchUp(Instant /*now*/) const {}

  // A reader of the ends of one flow's chunks, in their order.
  class Reader {
   public:
    // The instant at which the flow had carried `work` more than at the last call. REQUIRES: that
    // has happened.
    Instant After(Span work) {
      virtual_at_ += work.ticks;
      if (virtual_at_ > until_) GoOn();
      return anchor_->at + Span{(virtual_at_ - anchor_->virtual_at) * anchor_->active};
    }

   private:
    friend class LoggedLink;
    Reader(const LoggedLink& link, Flow flow)
        : anchor_(link.log_.data() +
                  (link.begins_[static_cast<size_t>(flow)].position - link.first_position_)),
          last_(link.log_.data() + link.log_.size() - 1),
          virtual_at_(link.begins_[static_cast<size_t>(flow)].virtual_at) {
      SetUntil();
    }

    // To the last anchor before that value of the clock: by doubling steps, then by halves.
    void GoOn() {
      const auto precedes = [&](std::ptrdiff_t step) {
        return last_ - anchor_ >= step && anchor_[step].virtual_at < virtual_at_;
      };
      std::ptrdiff_t step = 1;
      for (; precedes(step); step *= 2) anchor_ += step;
      for (step /= 2; step > 0; step /= 2) {
        if (precedes(step)) anchor_ += step;
      }
      SetUntil();
    }
    void SetUntil() {
      until_ = anchor_ == last_ ? std::numeric_limits<int64_t>::max() : anchor_[1].virtual_at;
    }

    const Anchor* anchor_;
    const Anchor* last_;
    int64_t virtual_at_;
    int64_t until_ = 0;  // the anchor counts for values up to this one
  };
  // Valid until the next Settle. REQUIRES: the flow is active, or ended at this very instant.
  Reader Read(Flow flow) const { return Reader(*this, flow); }
  // The work that the flow has carried until `now`. REQUIRES: the flow is active; the instant is
  // settled.
  Span CarriedOf(Flow flow, Instant now) const {
    return {link_.VirtualAt(now) - begins_[static_cast<size_t>(flow)].virtual_at};
  }

 private:
  struct Begin {
    int64_t virtual_at = 0;
    int64_t position = 0;  // in the log, counted from the start of the run
  };

  static constexpr size_t kMinTrim = 1024;

  void NoteAnchor() {
    if (link_.anchor() == log_.back().at && link_.active() == log_.back().active) return;
    log_.push_back(
        {.at = link_.anchor(), .virtual_at = link_.virtual_anchor(), .active = link_.active()});
  }
  // The begin of a flow at the instant that was settled last.
  Begin BeginNow() const {
    return {.virtual_at = link_.settled(),
            .position = first_position_ + static_cast<int64_t>(log_.size()) - 1};
  }

  // Forgets what no active flow can be asked about. What remains may at most double until the next
  // time.
  void Trim() {
    int64_t oldest = first_position_ + static_cast<int64_t>(log_.size()) - 1;
    link_.ForEachActive(
        [&](Flow flow) { oldest = std::min(oldest, begins_[static_cast<size_t>(flow)].position); });
    log_.erase(log_.begin(), log_.begin() + (oldest - first_position_));
    first_position_ = oldest;
    trim_at_ = std::max(kMinTrim, 2 * log_.size());
  }

  EqualShareLink link_;
  std::vector<Begin> begins_;  // by flow
  std::vector<Flow> starting_;
  std::vector<Anchor> log_;  // never empty
  int64_t first_position_ = 0;
  size_t trim_at_ = kMinTrim;
};

}  // namespace stepcast
