#include "core/base/graph_cuts.h"

#include <cstddef>
#include <span>

#include "core/base/index.h"

namespace stepcast {

namespace {

std::span<const int32_t> TargetsOf(const TargetLists& lists, int32_t node) {
  const size_t first = Index(lists.first[Index(node)]);
  return std::span(lists.targets).subspan(first, Index(lists.first[Index(node) + 1]) - first);
}

TargetLists Reversed(const TargetLists& lists) {
  TargetLists reversed{.first = std::vector<int32_t>(lists.first.size()),
                       .targets = std::vector<int32_t>(lists.targets.size())};
  for (const int32_t target : lists.targets) ++reversed.first[Index(target) + 1];
  for (size_t i = 1; i < reversed.first.size(); ++i) reversed.first[i] += reversed.first[i - 1];
  std::vector<int32_t> next(reversed.first.begin(), reversed.first.end() - 1);
  for (int32_t node = 0; node < lists.size(); ++node) {
    for (const int32_t target : TargetsOf(lists, node))
      reversed.targets[Index(next[Index(target)]++)] = node;
  }
  return reversed;
}

// The number of nodes behind each one that is at some time the only one that could be next: all
// that is not done then. -1 for others.
std::vector<int32_t> BehindOnlyChoices(const TargetLists& lists) {
  std::vector<int32_t> pending(Index(lists.size()));
  for (const int32_t target : lists.targets) ++pending[Index(target)];
  std::vector<int32_t> order;
  order.reserve(pending.size());
  for (int32_t node = 0; node < lists.size(); ++node) {
    if (pending[Index(node)] == 0) order.push_back(node);
  }
  std::vector<int32_t> behind(pending.size(), -1);
  for (size_t done = 0; done < order.size(); ++done) {
    if (order.size() == done + 1)
      behind[Index(order[done])] = static_cast<int32_t>(pending.size() - done) - 1;
    for (const int32_t target : TargetsOf(lists, order[done])) {
      if (--pending[Index(target)] == 0) order.push_back(target);
    }
  }
  return behind;
}

}  // namespace

// It is the only choice in both directions, and those behind and before it are all others.
std::vector<bool> CutsOf(const TargetLists& lists) {
  const std::vector<int32_t> behind = BehindOnlyChoices(lists);
  const std::vector<int32_t> before = BehindOnlyChoices(Reversed(lists));
  std::vector<bool> cuts(behind.size());
  for (size_t node = 0; node < cuts.size(); ++node) {
    cuts[node] = behind[node] >= 0 && before[node] >= 0 &&
                 static_cast<size_t>(behind[node] + before[node]) + 1 == cuts.size();
  }
  return cuts;
}

}  // namespace stepcast
