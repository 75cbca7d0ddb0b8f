#include "core/ordering/outstanding_downloads.h"

#include <algorithm>
#include <utility>

namespace stepcast {

namespace {

size_t Index(int32_t i) { return static_cast<size_t>(i); }

// least[g] = the least load over g and all that depend on it, of groups that compute and wait for several downloads. Loads never fall along a
// dependency, so the search ends at the first such group.
template <typename Load, typename CountOf, typename LoadOf>
int64_t LeastLoads(const DependencyGroups& groups, CountOf count_of, LoadOf load_of, Load never, std::vector<Load>& least) {
  int64_t work = groups.size();
  for (int32_t g = groups.size() - 1; g >= 0; --g) {
    if (groups.groups()[Index(g)].computes && count_of(g) > 1) {
      least[Index(g)] = load_of(g);
      continue;
    }
    least[Index(g)] = never;
    if (count_of(g) == 0) continue;
    for (const int32_t dependent : groups.dependents(g)) least[Index(g)] = std::min(least[Index(g)], least[Index(dependent)]);
    work += static_cast<int64_t>(groups.dependents(g).size());
  }
  return work;
}

}  // namespace

OutstandingDownloads::OutstandingDownloads(const DependencyGroups& groups, std::vector<Span> times)
    : groups_(&groups),
      times_(std::move(times)),
      freed_(times_.size()),
      waiting_(Index(groups.size())),
      impending_(Index(groups.size())),
      visited_(Index(groups.size())) {}

absl::StatusOr<OutstandingDownloads> OutstandingDownloads::Create(const DependencyGroups& groups, std::vector<Span> times, StopCheck stop) {
  OutstandingDownloads result(groups, std::move(times));
  int64_t checked = 0;
  for (size_t d = 0; d < result.times_.size(); ++d) {
    result.ForEachWaiting(d, [&](int32_t group) {
      Waiting& waiting = result.waiting_[Index(group)];
      ++waiting.count;
      waiting.mix ^= d;
      waiting.load += result.times_[d];
    });
    if (result.work_ - checked < kStopCheckInterval) continue;
    checked = result.work_;
    if (absl::Status status = stop(); !status.ok()) return status;
  }
  for (int32_t g = 0; g < groups.size(); ++g) {
    const Waiting& waiting = result.waiting_[Index(g)];
    if (waiting.count == 1) result.freed_[waiting.mix] += groups.groups()[Index(g)].computation;
  }
  result.UpdateImpendingLoads();
  return result;
}

template <typename Visit>
void OutstandingDownloads::ForEachWaiting(size_t download, Visit visit) {
  const int32_t first = groups_->download_groups()[download];
  ++visit_;
  visited_[Index(first)] = visit_;
  to_visit_.assign(1, first);
  while (!to_visit_.empty()) {
    const int32_t group = to_visit_.back();
    to_visit_.pop_back();
    visit(group);
    const auto dependents = groups_->dependents(group);
    work_ += 1 + static_cast<int64_t>(dependents.size());
    for (const int32_t dependent : dependents) {
      if (visited_[Index(dependent)] == visit_) continue;
      visited_[Index(dependent)] = visit_;
      to_visit_.push_back(dependent);
    }
  }
}

void OutstandingDownloads::Remove(size_t download) {
  ForEachWaiting(download, [&](int32_t group) {
    Waiting& waiting = waiting_[Index(group)];
    --waiting.count;
    waiting.mix ^= download;
    waiting.load = waiting.load - times_[download];
    if (waiting.count == 1) freed_[waiting.mix] += groups_->groups()[Index(group)].computation;
  });
  UpdateImpendingLoads();
}

void OutstandingDownloads::UpdateImpendingLoads() {
  work_ += LeastLoads(
      *groups_, [&](int32_t g) { return waiting_[Index(g)].count; }, [&](int32_t g) { return waiting_[Index(g)].load; }, kNever, impending_);
}

std::vector<int32_t> ImpendingTransferCounts(const DependencyGroups& groups) {
  const auto count_of = [&](int32_t g) { return groups.groups()[Index(g)].download_count; };
  std::vector<int32_t> least(Index(groups.size()));
  LeastLoads(groups, count_of, count_of, INT32_MAX, least);
  std::vector<int32_t> counts;
  counts.reserve(groups.download_groups().size());
  for (const int32_t group : groups.download_groups()) counts.push_back(least[Index(group)]);
  return counts;
}

}  // namespace stepcast
