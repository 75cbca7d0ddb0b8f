#include "core/model/dependency_cycle.h"

#include <algorithm>
#include <cstddef>

namespace stepcast {

namespace {

class DependencyGraph {
 public:
  explicit DependencyGraph(const std::vector<Operation>& operations)
      : operations_(operations), unmet_(operations.size(), 0) {
    first_follower_.assign(operations.size() + 1, 0);
    ForEachEdge([&](size_t, size_t before) { ++first_follower_[before + 1]; });
    for (size_t i = 0; i < operations.size(); ++i) first_follower_[i + 1] += first_follower_[i];
    followers_.resize(first_follower_.back());
    std::vector<size_t> next(first_follower_.begin(), first_follower_.end() - 1);
    ForEachEdge([&](size_t after, size_t before) {
      followers_[next[before]++] = after;
      ++unmet_[after];
    });
  }

  // Takes away, again and again, what waits for nothing that is left.
  void RemoveAcyclic() {
    std::vector<size_t> free;
    for (size_t i = 0; i < unmet_.size(); ++i) {
      if (unmet_[i] == 0) free.push_back(i);
    }
    while (!free.empty()) {
      const size_t done = free.back();
      free.pop_back();
      for (size_t at = first_follower_[done]; at < first_follower_[done + 1]; ++at) {
        if (--unmet_[followers_[at]] == 0) free.push_back(followers_[at]);
      }
    }
  }

  bool Left(size_t operation) const { return unmet_[operation] > 0; }
  size_t size() const { return unmet_.size(); }

  // Something left that `operation` waits for. REQUIRES: Left(operation), after RemoveAcyclic.
  size_t LeftBefore(size_t operation) const {
    size_t found = operation;
    ForEachEdgeOf(operation, [&](size_t, size_t before) {
      if (found == operation && Left(before)) found = before;
    });
    return found;
  }

 private:
  template <typename Visit>
  void ForEachEdgeOf(size_t after, Visit visit) const {
    for (const int32_t before : operations_[after].waiting_for) {
      if (before < 0) continue;
      const auto index = static_cast<size_t>(before);
      if (index < operations_.size() && index != after) visit(after, index);
    }
  }
  template <typename Visit>
  void ForEachEdge(Visit visit) const {
    for (size_t after = 0; after < operations_.size(); ++after) ForEachEdgeOf(after, visit);
  }

  const std::vector<Operation>& operations_;
  std::vector<size_t> unmet_;           // per operation: what it waits for that is left
  std::vector<size_t> first_follower_;  // CSR offsets into followers_
  std::vector<size_t> followers_;
};

}  // namespace

std::vector<int32_t> FindDependencyCycle(const std::vector<Operation>& operations) {
  DependencyGraph graph(operations);
  graph.RemoveAcyclic();
  size_t at = 0;
  while (at < graph.size() && !graph.Left(at)) ++at;
  if (at == graph.size()) return {};
  // Whatever is left waits for something left, so a walk must come back to where it has been.
  std::vector<bool> seen(graph.size(), false);
  std::vector<int32_t> walk;
  while (!seen[at]) {
    seen[at] = true;
    walk.push_back(static_cast<int32_t>(at));
    at = graph.LeftBefore(at);
  }
  walk.erase(walk.begin(), std::find(walk.begin(), walk.end(), static_cast<int32_t>(at)));
  std::rotate(walk.begin(), std::min_element(walk.begin(), walk.end()), walk.end());
  return walk;
}

std::vector<bool> AllThatWaitFor(std::vector<size_t> first,
                                 const std::vector<Operation>& operations) {
  std::vector<std::vector<size_t>> followers(operations.size());
  for (size_t i = 0; i < operations.size(); ++i) {
    for (const int32_t before : operations[i].waiting_for)
      followers[static_cast<size_t>(before)].push_back(i);
  }
  std::vector<bool> waits(operations.size());
  while (!first.empty()) {
    const size_t at = first.back();
    first.pop_back();
    if (waits[at]) continue;
    waits[at] = true;
    first.insert(first.end(), followers[at].begin(), followers[at].end());
  }
  return waits;
}

}  // namespace stepcast
