#include "core/base/graph_cuts.h"

#include <cstddef>

#include "core/base/index.h"

namespace stepcast {

namespace {

using Targets = std::vector<std::vector<int32_t>>;

// The number of nodes behind each one that is at some time the only one that could be next: all
// that is not done then. -1 for others.
std::vector<int32_t> BehindOnlyChoices(const Targets& targets) {
  std::vector<int32_t> pending(targets.size());
  for (const std::vector<int32_t>& own : targets) {
    for (const int32_t node : own) ++pending[Index(node)];
  }
  std::vector<int32_t> order;
  order.reserve(targets.size());
  for (size_t node = 0; node < targets.size(); ++node) {
    if (pending[node] == 0) order.push_back(static_cast<int32_t>(node));
  }
  std::vector<int32_t> behind(targets.size(), -1);
  for (size_t done = 0; done < order.size(); ++done) {
    if (order.size() == done + 1)
      behind[Index(order[done])] = static_cast<int32_t>(targets.size() - done) - 1;
    for (const int32_t node : targets[Index(order[done])]) {
      if (--pending[Index(node)] == 0) order.push_back(node);
    }
  }
  return behind;
}

}  // namespace

// It is the only choice in both directions, and those behind and before it are all others.
std::vector<bool> CutsOf(const Targets& targets) {
  Targets sources(targets.size());
  for (size_t node = 0; node < targets.size(); ++node) {
    for (const int32_t target : targets[node])
      sources[Index(target)].push_back(static_cast<int32_t>(node));
  }
  const std::vector<int32_t> behind = BehindOnlyChoices(targets);
  const std::vector<int32_t> before = BehindOnlyChoices(sources);
  std::vector<bool> cuts(targets.size());
  for (size_t node = 0; node < targets.size(); ++node) {
    cuts[node] = behind[node] >= 0 && before[node] >= 0 &&
                 static_cast<size_t>(behind[node] + before[node]) + 1 == targets.size();
  }
  return cuts;
}

}  // namespace stepcast
