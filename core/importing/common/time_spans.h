// Sets of spans of time, and how much of them there is; the usual length of a recording's steps, by
// which odd ones are told.
//
// Threads: pure functions. Cost: linear, UnionOf sorts.
#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

struct TimeSpan {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// Sorted; spans that overlap or touch become one.
std::vector<TimeSpan> UnionOf(std::vector<TimeSpan> spans);
// The time that is in both. REQUIRES: each is a result of UnionOf.
std::vector<TimeSpan> BothOf(const std::vector<TimeSpan>& a, const std::vector<TimeSpan>& b);
// The time between the spans, from one instant to another. REQUIRES: a result of UnionOf.
std::vector<TimeSpan> GapsOf(const std::vector<TimeSpan>& spans, int64_t from_ns, int64_t to_ns);
// REQUIRES: a result of UnionOf.
int64_t LengthOf(const std::vector<TimeSpan>& spans);

// The length of some spans that lies before an instant; instants are asked for in order.
class LengthBefore {
 public:
  // REQUIRES: a result of UnionOf. Borrows it.
  explicit LengthBefore(const std::vector<TimeSpan>& spans)
      : next_(spans.begin()), end_(spans.end()) {}

  int64_t At(int64_t instant_ns) {
    for (; next_ != end_ && next_->end_ns <= instant_ns; ++next_)
      passed_ns_ += next_->end_ns - next_->start_ns;
    const bool is_within = next_ != end_ && next_->start_ns < instant_ns;
    return passed_ns_ + (is_within ? instant_ns - next_->start_ns : 0);
  }

 private:
  std::vector<TimeSpan>::const_iterator next_;
  const std::vector<TimeSpan>::const_iterator end_;
  int64_t passed_ns_ = 0;
};

// The usual length of steps.

// The upper median; there is at least one.
int64_t MiddleOf(std::vector<int64_t> values);

// The length above which a step is beyond the usual variation, and by so much that a step more or
// less is seen. Of few steps the usual one is not known.
int64_t LongestUsual(const std::vector<int64_t>& lengths, int64_t median);

}  // namespace stepcast
