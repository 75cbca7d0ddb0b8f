// A link that serves one worker at a time, in turns of so much work each: a fair queue that is not
// infinitely fine.
//
// A worker whose chunk ends within its turn goes on with its next one if that starts at the same
// instant. A worker that was idle is a newcomer: newcomers go first, in the order in which they
// came (those of one instant ascending), each after the turn under way; whoever has had a turn and
// is not done goes behind all others. Queues that hold segments of 64 KiB and let a new flow go
// first do this (fq_codel of Linux keeps such a list of new flows; htb's guaranteed rates have the
// same effect), and it matters: the worker that is ahead waits for the turns of all others when its
// last bytes are due, one that comes late does not wait at all, so workers are drawn into step
// (tests/testbed/README.md). With turns of next to nothing this is EqualShareLink. Usage, flows and
// threads: as EqualShareLink. Cost: Settle O(active flows), however many turns have passed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/base/time.h"

namespace stepcast {

class TurnsLink {
 public:
  using Flow = int32_t;

  // REQUIRES: turn.ticks > 0.
  TurnsLink(size_t flows, Span turn) : turn_(turn.ticks), left_(flows) {}

  void TakeEnded(Instant now, std::vector<Flow>& ended) {
    Advance(now);
    if (serving_ != kNone && left_[Index(serving_)] == 0) ended.push_back(serving_);
  }

  void Start(Flow flow, Span work) {
    left_[Index(flow)] = work.ticks;
    // Only a flow that has just ended is still the one that is served.
    if (flow != serving_) arriving_.push_back(flow);
  }

  Instant Settle(Instant now) {
    Advance(now);
    if (arriving_.size() > 1) std::sort(arriving_.begin(), arriving_.end());
    newcomers_.insert(newcomers_.end(), arriving_.begin(), arriving_.end());
    arriving_.clear();
    if (serving_ != kNone && (left_[Index(serving_)] == 0 || turn_left_ == 0)) EndTurn();
    if (serving_ == kNone) BeginTurn();
    return serving_ == kNone ? kEndOfTime : now + Span{UntilNextEnd()};
  }

  int64_t settle_cost() const {
    return static_cast<int64_t>(1 + newcomers_.size() + others_.size());
  }
  int64_t CarriedBy(Instant now, int32_t /*hub*/) const {
    return carried_ + (serving_ == kNone ? 0 : (now - at_).ticks);
  }

 private:
  static constexpr Flow kNone = -1;

  void EndTurn() {
    const Flow flow = std::exchange(serving_, kNone);
    if (left_[Index(flow)] > 0) others_.push_back(flow);
  }

  void BeginTurn() {
    std::deque<Flow>& line = newcomers_.empty() ? others_ : newcomers_;
    if (line.empty()) return;
    serving_ = line.front();
    line.pop_front();
    turn_left_ = turn_;
  }

  // Serves until `now`. A turn that ends just then is not ended here: a newcomer of this instant is
  // to go before the next.
  void Advance(Instant now) {
    int64_t elapsed = (now - std::exchange(at_, now)).ticks;
    if (serving_ == kNone) return;
    carried_ += elapsed;
    while (elapsed > 0) {
      if (newcomers_.empty() && turn_left_ == turn_) elapsed -= SkipRounds(elapsed);
      const int64_t piece = std::min({elapsed, turn_left_, left_[Index(serving_)]});
      left_[Index(serving_)] -= piece;
      turn_left_ -= piece;
      elapsed -= piece;
      if (elapsed == 0) return;
      EndTurn();
      BeginTurn();
    }
  }

  // As many whole rounds, a turn of every flow, as neither time nor any flow's work ends in;
  // returns what they take.
  int64_t SkipRounds(int64_t elapsed) {
    const int64_t round = turn_ * static_cast<int64_t>(others_.size() + 1);
    int64_t rounds = (elapsed - 1) / round;
    rounds = std::min(rounds, (left_[Index(serving_)] - 1) / turn_);
    for (const Flow flow : others_) rounds = std::min(rounds, (left_[Index(flow)] - 1) / turn_);
    if (rounds <= 0) return 0;
    left_[Index(serving_)] -= rounds * turn_;
    for (const Flow flow : others_) left_[Index(flow)] -= rounds * turn_;
    return rounds * round;
  }

  // The time until the next end if nobody else comes: the flow with the fewest turns to go ends
  // first, of equals the one that is served first.
  int64_t UntilNextEnd() const {
    const int64_t left = left_[Index(serving_)];
    if (left <= turn_left_) return left;
    const auto count = static_cast<int64_t>(newcomers_.size() + others_.size() + 1);
    int64_t place = 0;
    int64_t fewest_turns = INT64_MAX;  // that a flow takes before its last
    int64_t until = 0;
    const auto consider = [&](int64_t work) {
      const int64_t turns = (work - 1) / turn_;
      if (turns < fewest_turns) {
        fewest_turns = turns;
        until = turns * count * turn_ + place * turn_ + work - turns * turn_;
      }
      ++place;
    };
    for (const Flow flow : newcomers_) consider(left_[Index(flow)]);
    for (const Flow flow : others_) consider(left_[Index(flow)]);
    consider(left - turn_left_);
    return turn_left_ + until;
  }

  const int64_t turn_;
  std::vector<int64_t> left_;   // by flow, at at_
  std::deque<Flow> newcomers_;  // that have not been served yet
  std::deque<Flow> others_;     // behind them, who is next first
  std::vector<Flow> arriving_;  // at this instant
  Flow serving_ = kNone;
  int64_t turn_left_ = 0;  // of the flow that is served
  Instant at_;             // the instant of this state
  int64_t carried_ = 0;
};

}  // namespace stepcast
