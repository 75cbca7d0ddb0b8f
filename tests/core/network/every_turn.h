// A link that is served in turns, with an event for every single turn: what TurnsLink is held
// against.
//
// Says when the next chunk ends by letting a copy of itself run ahead. Who goes next and usage: as
// TurnsLink.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/base/time.h"

namespace stepcast::testing {

class EveryTurn {
 public:
  using Flow = int32_t;

  EveryTurn(size_t workers, Span turn) : turn_(turn.ticks), left_(workers) {}

  std::vector<Flow> TakeEnded(Instant now) {
    while (piece_ > 0 && piece_end_ < now) {
      EXPECT_FALSE(EndPiece());
      Serve(piece_end_);
    }
    if (piece_ > 0 && piece_end_ == now && EndPiece()) return {serving_};
    return {};
  }

  void Start(Flow flow, Span work) {
    left_[Index(flow)] = work.ticks;
    if (flow != serving_) arriving_.push_back(flow);
  }

  Instant Settle(Instant now) {
    std::sort(arriving_.begin(), arriving_.end());
    newcomers_.insert(newcomers_.end(), arriving_.begin(), arriving_.end());
    arriving_.clear();
    Serve(now);
    EveryTurn ahead = *this;
    while (ahead.piece_ > 0 && !ahead.EndPiece()) ahead.Serve(ahead.piece_end_);
    return piece_ == 0 ? kEndOfTime : ahead.piece_end_;
  }

 private:
  static constexpr Flow kNone = -1;

  static size_t Index(int32_t i) { return static_cast<size_t>(i); }

  // True if that ends a chunk, too.
  bool EndPiece() {
    left_[Index(serving_)] -= piece_;
    turn_left_ -= piece_;
    piece_ = 0;
    return left_[Index(serving_)] == 0;
  }

  void Serve(Instant now) {
    if (piece_ > 0) return;
    if (serving_ != kNone && (left_[Index(serving_)] == 0 || turn_left_ == 0)) {
      if (left_[Index(serving_)] > 0) others_.push_back(serving_);
      serving_ = kNone;
    }
    if (serving_ == kNone) {
      std::deque<Flow>& next = newcomers_.empty() ? others_ : newcomers_;
      if (next.empty()) return;
      serving_ = next.front();
      next.pop_front();
      turn_left_ = turn_;
    }
    piece_ = std::min(turn_left_, left_[Index(serving_)]);
    piece_end_ = now + Span{piece_};
  }

  int64_t turn_;
  std::vector<int64_t> left_;  // by flow, without the piece under way taken off
  std::deque<Flow> newcomers_;
  std::deque<Flow> others_;
  std::vector<Flow> arriving_;  // at this instant
  Flow serving_ = kNone;
  int64_t turn_left_ = 0;
  int64_t piece_ = 0;  // of the turn, under way; 0: none
  Instant piece_end_;
};

}  // namespace stepcast::testing
