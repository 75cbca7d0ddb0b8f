#include "core/engine/latest_ends.h"

namespace stepcast {

LatestEnds::LatestEnds(const std::vector<Span>& works, const std::vector<Span>& takes) {
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
