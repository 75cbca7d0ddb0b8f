#include "core/orders/tic_tac.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/orders/outstanding_downloads.h"

namespace stepcast {

namespace {

// Eq. 6 and the tie-break of Algorithm 3.
bool GoesBefore(const OutstandingDownloads& all, size_t a, size_t b) {
  const Span delay_by_a = std::min(all.freed_computation(b), all.transfer_time(a));
  const Span delay_by_b = std::min(all.freed_computation(a), all.transfer_time(b));
  if (delay_by_a != delay_by_b) return delay_by_a < delay_by_b;
  return all.impending_load(a) < all.impending_load(b);
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> TicRanks(const TransferGraph& graph, StopCheck stop) {
  const absl::StatusOr<DependencyGroups> groups = DependencyGroups::Build(graph, stop);
  if (!groups.ok()) return groups.status();
  std::vector<int32_t> ranks = ImpendingTransferCounts(*groups);
  std::vector<int32_t> loads = ranks;
  std::sort(loads.begin(), loads.end());
  loads.erase(std::unique(loads.begin(), loads.end()), loads.end());
  for (int32_t& rank : ranks)
    rank = static_cast<int32_t>(std::lower_bound(loads.begin(), loads.end(), rank) - loads.begin());
  return ranks;
}

absl::StatusOr<std::vector<int32_t>> TacOrder(const TransferGraph& graph, StopCheck stop) {
  const absl::StatusOr<DependencyGroups> groups = DependencyGroups::Build(graph, stop);
  if (!groups.ok()) return groups.status();
  std::vector<Span> times;
  times.reserve(graph.downloads().size());
  for (const int32_t op : graph.downloads()) times.push_back(graph.operation(op).time);
  absl::StatusOr<OutstandingDownloads> all =
      OutstandingDownloads::Create(*groups, std::move(times), stop);
  if (!all.ok()) return all.status();

  std::vector<size_t> left(graph.downloads().size());
  std::iota(left.begin(), left.end(), size_t{0});
  std::vector<int32_t> order;
  order.reserve(left.size());
  int64_t unchecked = 0;
  while (!left.empty()) {
    auto best = left.begin();
    for (auto candidate = std::next(best); candidate != left.end(); ++candidate) {
      if (GoesBefore(*all, *candidate, *best)) best = candidate;
    }
    order.push_back(graph.downloads()[*best]);
    const int64_t work_before = all->work();
    all->Remove(*best);
    left.erase(best);
    unchecked += all->work() - work_before + static_cast<int64_t>(left.size());
    if (unchecked < kStopCheckInterval) continue;
    unchecked = 0;
    if (absl::Status status = stop(); !status.ok()) return status;
  }
  return order;
}

}  // namespace stepcast
