#include "core/orders/order_bound.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/orders/dependency_groups.h"
#include "core/orders/outstanding_downloads.h"

namespace stepcast {

namespace {

double Ratio(Span part, Span whole) {
  return static_cast<double>(part.ticks) / static_cast<double>(whole.ticks);
}

}  // namespace

double ScheduleBounds::Efficiency(Span makespan) const {
  return upper == lower ? 1 : Ratio(upper - makespan, upper - lower);
}

double ScheduleBounds::SpeedupBound() const {
  return lower == Span{} ? 0 : Ratio(upper - lower, lower);
}

ScheduleBounds BoundsOf(std::span<const Span> time_by_resource) {
  ScheduleBounds bounds;
  for (const Span time : time_by_resource) {
    bounds.upper += time;
    bounds.lower = std::max(bounds.lower, time);
  }
  return bounds;
}

namespace {

// Sums over a group and all that depend on it.
class Behind {
 public:
  explicit Behind(const DependencyGroups& groups)
      : groups_(groups), visited_(Index(groups.size()), -1) {}

  Span Computation(int32_t group) {
    Span sum;
    to_visit_.assign(1, group);
    visited_[Index(group)] = group;
    while (!to_visit_.empty()) {
      const int32_t at = to_visit_.back();
      to_visit_.pop_back();
      sum += groups_.groups()[Index(at)].computation;
      for (const int32_t dependent : groups_.dependents(at)) {
        if (std::exchange(visited_[Index(dependent)], group) != group)
          to_visit_.push_back(dependent);
      }
      ++work_;
    }
    return sum;
  }
  int64_t work() const { return work_; }

 private:
  const DependencyGroups& groups_;
  std::vector<int32_t> visited_;  // by group: for which it was visited last
  std::vector<int32_t> to_visit_;
  int64_t work_ = 0;
};

}  // namespace

absl::StatusOr<Span> LeastMakespan(const TransferGraph& graph, StopCheck stop) {
  const absl::StatusOr<DependencyGroups> groups = DependencyGroups::Build(graph, stop);
  if (!groups.ok()) return groups.status();
  std::vector<Span> times;
  Span all;
  for (const int32_t op : graph.downloads()) {
    times.push_back(graph.operation(op).time);
    all += times.back();
  }
  const absl::StatusOr<OutstandingDownloads> outstanding =
      OutstandingDownloads::Create(*groups, std::move(times), stop);
  if (!outstanding.ok()) return outstanding.status();

  Span bound = all;
  if (groups->size() > kMaxGroupsToBound) return bound;
  Behind behind(*groups);
  int64_t checked = 0;
  Span least_behind_a_download = kNever;
  for (int32_t group = 0; group < groups->size(); ++group) {
    bound = std::max(bound, outstanding->load(group) + behind.Computation(group));
    if (behind.work() - checked < kStopCheckInterval) continue;
    checked = behind.work();
    if (absl::Status status = stop(); !status.ok()) return status;
  }
  // One of the downloads is the last to arrive.
  for (const int32_t group : groups->download_groups()) {
    least_behind_a_download = std::min(least_behind_a_download, behind.Computation(group));
  }
  if (least_behind_a_download != kNever) bound = std::max(bound, all + least_behind_a_download);
  return bound;
}

}  // namespace stepcast
