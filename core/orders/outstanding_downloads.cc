#include "core/orders/outstanding_downloads.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "core/base/index.h"

namespace stepcast {

namespace {

// The words of a sweep over the graph, which handles a download with each bit.
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
  // A dependency has a subset of its dependents' downloads: as many of them means the same ones.
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

namespace {

// Downloads that one sweep over the groups handles, a bit each.
constexpr size_t kBytes = 32;
constexpr size_t kDownloadsInBytes = kBytes * 8;
using DownloadBytes = std::array<uint8_t, kBytes>;

constexpr size_t kWordBits = 64;

// Sums of any set of eight downloads: their times together, and their numbers by exclusive or.
class SumsOfEight {
 public:
  struct Sum {
    Span load;
    uint32_t mix = 0;
  };

  SumsOfEight(const std::vector<Span>& times, size_t first) {
    for (size_t set = 1; set < sums_.size(); ++set) {
      const size_t download = first + static_cast<size_t>(std::countr_zero(set));
      sums_[set] = sums_[set & (set - 1)];
      if (download >= times.size()) continue;
      sums_[set].load += times[download];
      sums_[set].mix ^= static_cast<uint32_t>(download);
    }
  }
  const Sum& Of(uint8_t set) const { return sums_[set]; }

 private:
  std::array<Sum, 256> sums_;
};

}  // namespace

OutstandingDownloads::OutstandingDownloads(const DependencyGroups& groups, std::vector<Span> times)
    : groups_(&groups),
      times_(std::move(times)),
      freed_(times_.size()),
      waiting_(Index(groups.size())),
      passed_(Index(groups.size())),
      impending_(Index(groups.size())),
      visited_(Index(groups.size())),
      suspects_((Index(groups.size()) + kWordBits - 1) / kWordBits) {}

absl::StatusOr<OutstandingDownloads> OutstandingDownloads::Create(const DependencyGroups& groups,
                                                                  std::vector<Span> times,
                                                                  StopCheck stop) {
  OutstandingDownloads result(groups, std::move(times));
  if (absl::Status status = result.AddUpLoads(stop); !status.ok()) return status;
  for (int32_t g = 0; g < groups.size(); ++g) {
    const DependencyGroups::Group& group = groups.groups()[Index(g)];
    result.waiting_[Index(g)].count = group.download_count;
    const bool is_passed = group.download_count == 1 || !group.computes;
    result.passed_[Index(g)] = group.download_count > 0 && is_passed ? 1 : 0;
    if (group.download_count == 1)
      result.freed_[result.waiting_[Index(g)].mix] += group.computation;
  }
  for (int32_t g = 0; g < groups.size(); ++g) result.Suspect(g);
  result.UpdateImpendingLoads();
  return result;
}

absl::Status OutstandingDownloads::AddUpLoads(StopCheck stop) {
  std::vector<DownloadBytes> sets(waiting_.size());
  int64_t checked = 0;
  for (size_t first = 0; first < times_.size(); first += kDownloadsInBytes) {
    std::vector<SumsOfEight> tables;
    for (size_t byte = 0; byte < kBytes; ++byte) tables.emplace_back(times_, first + byte * 8);
    std::fill(sets.begin(), sets.end(), DownloadBytes{});
    const size_t end = std::min(first + kDownloadsInBytes, times_.size());
    for (size_t d = first; d < end; ++d) {
      uint8_t& byte = sets[Index(groups_->download_groups()[d])][(d - first) / 8];
      byte = static_cast<uint8_t>(byte | (1U << ((d - first) % 8)));
    }
    for (int32_t g = 0; g < groups_->size(); ++g) {
      const DownloadBytes& set = sets[Index(g)];
      for (size_t byte = 0; byte < kBytes; ++byte) {
        const SumsOfEight::Sum& sum = tables[byte].Of(set[byte]);
        waiting_[Index(g)].load += sum.load;
        waiting_[Index(g)].mix ^= sum.mix;
      }
      const auto dependents = groups_->dependents(g);
      for (const int32_t dependent : dependents) {
        for (size_t byte = 0; byte < kBytes; ++byte) sets[Index(dependent)][byte] |= set[byte];
      }
      work_ += 2 + static_cast<int64_t>(dependents.size());
      if (work_ - checked < kStopCheckInterval) continue;
      checked = work_;
      if (absl::Status status = stop(); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

void OutstandingDownloads::Remove(size_t download) {
  const int32_t first = groups_->download_groups()[download];
  ++visit_;
  visited_[Index(first)] = visit_;
  released_.assign(1, first);
  for (size_t done = 0; done < released_.size(); ++done) {
    const int32_t at = released_[done];
    Release(at, download);
    const auto dependents = groups_->dependents(at);
    work_ += 1 + static_cast<int64_t>(dependents.size());
    for (const int32_t dependent : dependents) {
      if (visited_[Index(dependent)] == visit_) continue;
      visited_[Index(dependent)] = visit_;
      released_.push_back(dependent);
    }
  }
  for (const int32_t group : released_) ShowRelease(group);
  UpdateImpendingLoads();
}

// A load that has fallen is the least behind whatever sees it, or no less than that was; of a group
// that is passed from now on the load is no longer seen, so that what saw it looks again.
void OutstandingDownloads::ShowRelease(int32_t group) {
  const Waiting& waiting = waiting_[Index(group)];
  if (waiting.count == 0) return;  // so do those that it depends on
  Suspect(group);
  const bool is_passed = passed_[Index(group)] != 0;
  const auto dependencies = groups_->dependencies(group);
  work_ += static_cast<int64_t>(dependencies.size());
  for (const int32_t before : dependencies) {
    if (is_passed) {
      Suspect(before);
    } else if (passed_[Index(before)] != 0 && waiting.load < impending_[Index(before)]) {
      impending_[Index(before)] = waiting.load;
      for (const int32_t further : groups_->dependencies(before)) Suspect(further);
    }
  }
}

void OutstandingDownloads::Release(int32_t group, size_t download) {
  Waiting& waiting = waiting_[Index(group)];
  waiting.load = waiting.load - times_[download];
  waiting.mix ^= static_cast<uint32_t>(download);
  if (--waiting.count > 1) return;
  passed_[Index(group)] = waiting.count == 1 ? 1 : 0;
  if (waiting.count == 1) freed_[waiting.mix] += groups_->groups()[Index(group)].computation;
}

void OutstandingDownloads::Suspect(int32_t group) {
  if (passed_[Index(group)] == 0) return;
  const size_t word = Index(group) / kWordBits;
  suspects_[word] |= uint64_t{1} << (Index(group) % kWordBits);
  suspect_words_ = std::max(suspect_words_, word + 1);
}

// Loads never fall along a dependency, so the search for the least one ends at the first group that
// is not passed.
Span OutstandingDownloads::LeastLoadBehind(int32_t group) const {
  Span least = kNever;
  for (const int32_t dependent : groups_->dependents(group))
    least = std::min(least, LeastLoadFrom(dependent));
  return least;
}

void OutstandingDownloads::UpdateImpendingLoads() {
  while (suspect_words_ > 0) {
    uint64_t& word = suspects_[suspect_words_ - 1];
    if (word == 0) {
      --suspect_words_;
      continue;
    }
    const auto bit = static_cast<size_t>(std::bit_width(word)) - 1;
    word ^= uint64_t{1} << bit;
    const auto group = static_cast<int32_t>((suspect_words_ - 1) * kWordBits + bit);
    work_ += 1 + static_cast<int64_t>(groups_->dependents(group).size());
    const Span least = LeastLoadBehind(group);
    if (least == impending_[Index(group)]) continue;
    impending_[Index(group)] = least;
    for (const int32_t before : groups_->dependencies(group)) Suspect(before);
  }
}

// Numbers of downloads for loads, else as UpdateImpendingLoads.
std::vector<int32_t> ImpendingTransferCounts(const DependencyGroups& groups) {
  const auto count_of = [&](int32_t g) { return groups.groups()[Index(g)].download_count; };
  std::vector<int32_t> least(Index(groups.size()), INT32_MAX);
  for (int32_t g = groups.size() - 1; g >= 0; --g) {
    if (groups.groups()[Index(g)].computes && count_of(g) > 1) {
      least[Index(g)] = count_of(g);
    } else if (count_of(g) > 0) {
      for (const int32_t dependent : groups.dependents(g))
        least[Index(g)] = std::min(least[Index(g)], least[Index(dependent)]);
    }
  }
  std::vector<int32_t> counts;
  counts.reserve(groups.download_groups().size());
  for (const int32_t group : groups.download_groups()) counts.push_back(least[Index(group)]);
  return counts;
}

}  // namespace stepcast
