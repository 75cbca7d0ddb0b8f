// The end of what a link brings to one processor, from those few arrivals that can decide it.
//
// Items arrive one after the other, and a processor that is never idle while something is there
// takes each for a while, in whatever order: it is done at the latest of an arrival plus what that
// item and all later ones take. A link carries at most a tick of work in a tick, so an item is
// never the latest where a later one has as much of both together: work of the link up to it, and
// what is taken from it on. What remains to look at is known before anything has arrived.
// Threads: immutable. Memory: 20 bytes an item.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/index.h"
#include "core/base/time.h"

namespace stepcast {

class LatestEnds {
 public:
  LatestEnds() = default;
  // By item, in their order: its work on the link, and what it takes of the processor.
  LatestEnds(const std::vector<Span>& works, const std::vector<Span>& takes);

  int32_t size() const { return static_cast<int32_t>(decisive_before_.size()); }
  // Sums over the items before that one; over all where it is size().
  Span WorkBefore(int32_t item) const { return work_before_[Index(item)]; }
  Span TakenBefore(int32_t item) const { return taken_before_[Index(item)]; }
  // The nearest earlier item that can decide where this is the last one, or can itself; -1: none.
  int32_t DecisiveBefore(int32_t item) const { return decisive_before_[Index(item)]; }

 private:
  std::vector<Span> work_before_ = {{}};  // one more than items
  std::vector<Span> taken_before_ = {{}};
  std::vector<int32_t> decisive_before_;
};

inline LatestEnds::LatestEnds(const std::vector<Span>& works, const std::vector<Span>& takes) {
  work_before_.reserve(works.size() + 1);
  taken_before_.reserve(works.size() + 1);
  decisive_before_.reserve(works.size());
  for (size_t i = 0; i < works.size(); ++i) {
    work_before_.push_back(work_before_.back() + works[i]);
    taken_before_.push_back(taken_before_.back() + takes[i]);
    // But for what all take together, which is the same for each.
    const auto both_of = [this](int32_t item) { return WorkBefore(item + 1) - TakenBefore(item); };
    const auto item = static_cast<int32_t>(i);
    int32_t before = item - 1;
    while (before >= 0 && both_of(before) <= both_of(item)) before = DecisiveBefore(before);
    decisive_before_.push_back(before);
  }
}

}  // namespace stepcast
