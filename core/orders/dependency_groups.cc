#include "core/orders/dependency_groups.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "core/base/index.h"

namespace stepcast {

namespace {

// As many downloads as one sweep over the graph handles, a bit each.
constexpr size_t kWords = 4;
constexpr size_t kDownloadsInWords = kWords * 64;
using DownloadWords = std::array<uint64_t, kWords>;

// Counts `work` units and asks `stop` every kStopCheckInterval of them.
class Progress {
 public:
  explicit Progress(StopCheck stop) : stop_(stop) {}
  absl::Status Add(size_t work) {
    done_ += work;
    if (done_ < Index(kStopCheckInterval)) return absl::OkStatus();
    done_ = 0;
    return stop_();
  }

 private:
  StopCheck stop_;
  size_t done_ = 0;
};

// The number of downloads that each operation depends on.
absl::StatusOr<std::vector<int32_t>> CountDownloads(const TransferGraph& graph, StopCheck stop) {
  Progress progress(stop);
  std::vector<int32_t> counts(Index(graph.size()));
  std::vector<DownloadWords> sets(Index(graph.size()));
  const std::vector<int32_t>& downloads = graph.downloads();
  for (size_t first = 0; first < downloads.size(); first += kDownloadsInWords) {
    std::fill(sets.begin(), sets.end(), DownloadWords{});
    const size_t end = std::min(first + kDownloadsInWords, downloads.size());
    for (size_t d = first; d < end; ++d)
      sets[Index(downloads[d])][(d - first) / 64] |= uint64_t{1} << ((d - first) % 64);
    for (const int32_t op : graph.topological()) {
      const DownloadWords& set = sets[Index(op)];
      for (const uint64_t word : set) counts[Index(op)] += std::popcount(word);
      for (const int32_t after : graph.dependents(op)) {
        for (size_t w = 0; w < kWords; ++w) sets[Index(after)][w] |= set[w];
      }
      if (absl::Status status = progress.Add(1 + graph.dependents(op).size()); !status.ok())
        return status;
    }
  }
  return counts;
}

// Disjoint sets of operations (path halving; the smaller index is the root).
class Partition {
 public:
  explicit Partition(int32_t size) : parent_(Index(size)) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int32_t Root(int32_t op) {
    while (parent_[Index(op)] != op) op = parent_[Index(op)] = parent_[Index(parent_[Index(op)])];
    return op;
  }
  void Join(int32_t a, int32_t b) {
    a = Root(a);
    b = Root(b);
    parent_[Index(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int32_t> parent_;
};

}  // namespace

absl::StatusOr<DependencyGroups> DependencyGroups::Build(const TransferGraph& graph,
                                                         StopCheck stop) {
  const absl::StatusOr<std::vector<int32_t>> counts = CountDownloads(graph, stop);
  if (!counts.ok()) return counts.status();
  Progress progress(stop);
  // What an operation waits for has a subset of its downloads: as many of them means the same ones.
  Partition partition(graph.size());
  for (int32_t op = 0; op < graph.size(); ++op) {
    for (const int32_t after : graph.dependents(op)) {
      if ((*counts)[Index(op)] == (*counts)[Index(after)]) partition.Join(op, after);
    }
    if (absl::Status status = progress.Add(1 + graph.dependents(op).size()); !status.ok())
      return status;
  }
  std::vector<int32_t> roots;
  for (int32_t op = 0; op < graph.size(); ++op) {
    if (partition.Root(op) == op) roots.push_back(op);
  }
  std::stable_sort(roots.begin(), roots.end(),
                   [&](int32_t a, int32_t b) { return (*counts)[Index(a)] < (*counts)[Index(b)]; });
  std::vector<int32_t> group_of(Index(graph.size()));
  DependencyGroups result;
  for (const int32_t root : roots) {
    group_of[Index(root)] = result.size();
    result.groups_.push_back({.download_count = (*counts)[Index(root)]});
  }
  for (int32_t op = 0; op < graph.size(); ++op)
    group_of[Index(op)] = group_of[Index(partition.Root(op))];
  if (absl::Status status = result.Contract(graph, group_of, stop); !status.ok()) return status;
  return result;
}

absl::Status DependencyGroups::Contract(const TransferGraph& graph,
                                        const std::vector<int32_t>& group_of, StopCheck stop) {
  Progress progress(stop);
  std::vector<std::vector<int32_t>> dependents(groups_.size());
  for (int32_t op = 0; op < graph.size(); ++op) {
    const int32_t from = group_of[Index(op)];
    if (graph.operation(op).kind == OperationKind::kComputation) {
      groups_[Index(from)].computes = true;
      groups_[Index(from)].computation += graph.operation(op).time;
    }
    for (const int32_t after : graph.dependents(op)) {
      if (group_of[Index(after)] != from) dependents[Index(from)].push_back(group_of[Index(after)]);
    }
    if (absl::Status status = progress.Add(1 + graph.dependents(op).size()); !status.ok())
      return status;
  }
  first_dependent_.push_back(0);
  for (std::vector<int32_t>& list : dependents) {
    if (absl::Status status = progress.Add(1 + list.size()); !status.ok()) return status;
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    dependents_.insert(dependents_.end(), list.begin(), list.end());
    first_dependent_.push_back(dependents_.size());
  }
  for (const int32_t op : graph.downloads()) download_groups_.push_back(group_of[Index(op)]);
  Reverse();
  return absl::OkStatus();
}

void DependencyGroups::Reverse() {
  first_dependency_.assign(groups_.size() + 1, 0);
  for (const int32_t group : dependents_) ++first_dependency_[Index(group) + 1];
  for (size_t g = 0; g < groups_.size(); ++g) first_dependency_[g + 1] += first_dependency_[g];
  dependencies_.resize(dependents_.size());
  std::vector<size_t> next(first_dependency_.begin(), first_dependency_.end() - 1);
  for (int32_t g = 0; g < size(); ++g) {
    for (const int32_t dependent : dependents(g)) dependencies_[next[Index(dependent)]++] = g;
  }
}

}  // namespace stepcast
