// The series of the instants at which steps of any worker ended, thinned to at most kMaxMarks.
//
// Mark i is the instant at which (i + 1) x stride steps had ended; the stride doubles whenever the
// marks are full, so a long run is described as evenly as a short one (the collapsing of batches of
// Yeh and Schmeiser's dynamic batch means).
// Threads: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace stepcast {

class CompletionSeries {
 public:
  static constexpr size_t kMaxMarks = 2048;

  // REQUIRES: `now` is not before the last one.
  void Add(Instant now) {
    if (++since_mark_ < stride_) return;
    since_mark_ = 0;
    marks_.push_back(now);
    if (marks_.size() < kMaxMarks) return;
    for (size_t i = 0; i < kMaxMarks / 2; ++i) marks_[i] = marks_[2 * i + 1];
    marks_.resize(kMaxMarks / 2);
    stride_ *= 2;
  }

  const std::vector<Instant>& marks() const { return marks_; }
  // Steps from one mark to the next.
  int64_t stride() const { return stride_; }

  friend bool operator==(const CompletionSeries&, const CompletionSeries&) = default;

 private:
  std::vector<Instant> marks_;
  int64_t stride_ = 1;
  int64_t since_mark_ = 0;
};

}  // namespace stepcast
