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
//
// LoggedTurnsLink remembers the turns of each flow, so that a worker may send many chunks as one
// flow and be told afterwards when each of them ended, as with LoggedLink: chunks that follow each
// other without a gap go on with the turn at hand, so they change nothing for anybody else. Memory:
// 24 bytes for each turn that an active flow has had, where those of rounds that were jumped over
// count as one.
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

template <bool logged>
class BasicTurnsLink {
 private:
  // A turn of a flow, and those that follow it a period apart, until the flow's next entry.
  struct Turns {
    int64_t carried_before = 0;  // of the flow
    Instant at;
    int64_t period = 0;
  };

 public:
  using Flow = int32_t;

  // REQUIRES: turn.ticks > 0.
  BasicTurnsLink(size_t flows, Span turn)
      : turn_(turn.ticks), left_(flows), works_(logged ? flows : 0), log_(works_.size()) {}

  void TakeEnded(Instant now, std::vector<Flow>& ended) {
    Advance(now);
    if (serving_ != kNone && left_[Index(serving_)] == 0) ended.push_back(serving_);
  }

  void Start(Flow flow, Span work) {
    left_[Index(flow)] = work.ticks;
    if constexpr (logged) {
      works_[Index(flow)] = work.ticks;
      log_[Index(flow)].clear();
    }
    // Only a flow that has just ended is still the one that is served.
    if (flow != serving_) {
      arriving_.push_back(flow);
    } else {
      Log(flow, at_, 0);
    }
  }

  Instant Settle(Instant now) {
    Advance(now);
    if (arriving_.size() > 1) std::sort(arriving_.begin(), arriving_.end());
    newcomers_.insert(newcomers_.end(), arriving_.begin(), arriving_.end());
    arriving_.clear();
    if (serving_ != kNone && (left_[Index(serving_)] == 0 || turn_left_ == 0)) EndTurn();
    if (serving_ == kNone) BeginTurn(now);
    return serving_ == kNone ? kEndOfTime : now + Span{UntilNextEnd()};
  }

  int64_t settle_cost() const {
    return static_cast<int64_t>(1 + newcomers_.size() + others_.size());
  }
  int64_t CarriedBy(Instant now, int32_t /*hub*/ = 0) const {
    return carried_ + (serving_ == kNone ? 0 : (now - at_).ticks);
  }

  // LoggedTurnsLink's functions, as LoggedLink has them. CatchUp serves until `now`, before which
  // no flow ends or starts: CarriedOf tells of that instant.
  void CatchUp(Instant now) { Advance(now); }
  bool IsActive(Flow flow) const { return left_[Index(flow)] > 0; }
  Span CarriedOf(Flow flow, Instant /*now*/) const {
    return {works_[Index(flow)] - left_[Index(flow)]};
  }

  class Reader {
   public:
    Instant After(Span work) {
      carried_ += work.ticks;
      while (turns_ + 1 != end_ && turns_[1].carried_before < carried_) ++turns_;
      const int64_t since = carried_ - turns_->carried_before;
      if (since <= turn_) return turns_->at + Span{since};
      const int64_t before = (since - 1) / turn_;
      return turns_->at + Span{before * (turns_->period - turn_) + since};
    }

   private:
    friend class BasicTurnsLink;
    Reader(const std::vector<Turns>& log, int64_t turn)
        : turns_(log.data()), end_(log.data() + log.size()), turn_(turn) {}

    const Turns* turns_;
    const Turns* end_;
    const int64_t turn_;
    int64_t carried_ = 0;
  };
  Reader Read(Flow flow) const { return Reader(log_[Index(flow)], turn_); }

 private:
  static constexpr Flow kNone = -1;

  void Log(Flow flow, Instant at, int64_t period) {
    if constexpr (logged)
      log_[Index(flow)].push_back(
          {.carried_before = works_[Index(flow)] - left_[Index(flow)], .at = at, .period = period});
  }

  void EndTurn() {
    const Flow flow = std::exchange(serving_, kNone);
    if (left_[Index(flow)] > 0) others_.push_back(flow);
  }

  void BeginTurn(Instant at) {
    std::deque<Flow>& line = newcomers_.empty() ? others_ : newcomers_;
    if (line.empty()) return;
    serving_ = line.front();
    line.pop_front();
    turn_left_ = turn_;
    Log(serving_, at, 0);
  }

  // Serves until `now`. A turn that ends just then is not ended here: a newcomer of this instant is
  // to go before the next.
  void Advance(Instant now) {
    int64_t elapsed = (now - std::exchange(at_, now)).ticks;
    if (serving_ == kNone) return;
    carried_ += elapsed;
    while (elapsed > 0) {
      if (newcomers_.empty() && turn_left_ == turn_) elapsed -= SkipRounds(now, elapsed);
      const int64_t piece = std::min({elapsed, turn_left_, left_[Index(serving_)]});
      left_[Index(serving_)] -= piece;
      turn_left_ -= piece;
      elapsed -= piece;
      if (elapsed == 0) return;
      EndTurn();
      BeginTurn({now.ticks - elapsed});
    }
  }

  // Skips whole rounds, a turn of every flow, in which neither the time nor any flow's work ends;
  // returns what they take.
  int64_t SkipRounds(Instant now, int64_t elapsed) {
    const int64_t round = turn_ * static_cast<int64_t>(others_.size() + 1);
    int64_t rounds = (elapsed - 1) / round;
    rounds = std::min(rounds, (left_[Index(serving_)] - 1) / turn_);
    for (const Flow flow : others_) rounds = std::min(rounds, (left_[Index(flow)] - 1) / turn_);
    if (rounds <= 0) return 0;
    if constexpr (logged) {
      // The turn that is served began just now.
      log_[Index(serving_)].back().period = round;
      Instant at{now.ticks - elapsed};
      for (const Flow flow : others_) {
        at = at + Span{turn_};
        Log(flow, at, round);
      }
    }
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
  // By flow, in LoggedTurnsLink: its work, and its turns since it started.
  std::vector<int64_t> works_;
  std::vector<std::vector<Turns>> log_;
};

using TurnsLink = BasicTurnsLink<false>;
using LoggedTurnsLink = BasicTurnsLink<true>;

}  // namespace stepcast
