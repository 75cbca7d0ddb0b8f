#include "core/engine/lane_schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace stepcast {

namespace {

// By target: among operations and sinks, -1 for others.
std::vector<int32_t> TargetsOf(const Program& graph, OpIndex op,
                               const std::vector<int32_t>& target_of) {
  std::vector<int32_t> targets;
  for (const OpIndex dependent : graph.dependents(op)) {
    if (target_of[static_cast<size_t>(dependent)] >= 0)
      targets.push_back(target_of[static_cast<size_t>(dependent)]);
  }
  return targets;
}

}  // namespace

LaneSchedule::LaneSchedule(const Program& graph, std::vector<OpIndex> sources,
                           std::vector<OpIndex> operations, std::vector<OpIndex> sinks,
                           const std::vector<int32_t>& arrival_order)
    : sources_(std::move(sources)), operations_(std::move(operations)), sinks_(std::move(sinks)) {
  std::vector<int32_t> target_of(static_cast<size_t>(graph.size()), -1);
  int32_t targets = 0;
  for (const std::vector<OpIndex>* nodes : {&operations_, &sinks_}) {
    for (const OpIndex op : *nodes) target_of[static_cast<size_t>(op)] = targets++;
  }
  pending_counts_.assign(static_cast<size_t>(targets), 0);
  first_target_.push_back(0);
  for (const std::vector<int32_t>& own : TargetsOfSources(graph, target_of, arrival_order))
    AddNode(own);
  for (const OpIndex op : operations_) AddNode(TargetsOf(graph, op, target_of));
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (pending_counts_[i] == 0) roots_.push_back(static_cast<int32_t>(i));
  }
  pending_.resize(pending_counts_.size());
  queue_.resize(operations_.size());
  in_order_of_arrival_ = RunsInOrderOfArrival(graph);
  if (!in_order_of_arrival_) return;
  for (size_t i = 0; i < sources_.size(); ++i) {
    only_target_.push_back(first_target_[i] == first_target_[i + 1]
                               ? -1
                               : targets_[static_cast<size_t>(first_target_[i])]);
  }
}

void LaneSchedule::AddNode(const std::vector<int32_t>& targets) {
  for (const int32_t target : targets) {
    targets_.push_back(target);
    ++pending_counts_[static_cast<size_t>(target)];
  }
  first_target_.push_back(static_cast<int32_t>(targets_.size()));
}

// The edges from sources: an operation that waits for several sources of a lane is released by the
// last of them, whatever the others do.
LaneSchedule::Edges LaneSchedule::TargetsOfSources(
    const Program& graph, const std::vector<int32_t>& target_of,
    const std::vector<int32_t>& arrival_order) const {
  Edges targets;
  for (const OpIndex op : sources_) targets.push_back(TargetsOf(graph, op, target_of));
  if (arrival_order.empty()) return targets;
  std::vector<size_t> order(sources_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Lane by lane, the last arrival first.
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const LaneIndex lane_a = graph.lane(sources_[a]);
    const LaneIndex lane_b = graph.lane(sources_[b]);
    return lane_a != lane_b ? lane_a < lane_b : arrival_order[a] > arrival_order[b];
  });
  std::vector<LaneIndex> waits_for_lane(pending_counts_.size(), -1);
  for (const size_t source : order) {
    const LaneIndex lane = graph.lane(sources_[source]);
    std::vector<int32_t>& own = targets[source];
    own.erase(std::remove_if(own.begin(), own.end(),
                             [&](int32_t target) {
                               return std::exchange(waits_for_lane[static_cast<size_t>(target)],
                                                    lane) == lane;
                             }),
              own.end());
  }
  return targets;
}

std::vector<int32_t> LaneSchedule::LastAwaited(std::span<const int32_t> arriving) {
  // In a run of operations that take no time each starts when the last one arrives.
  struct Starts {
    void Ran(int32_t op, Instant start, Instant /*end*/) {
      at[Index(op)] = static_cast<int32_t>(start.ticks) - 1;
    }

    std::vector<int32_t> at;
  };
  std::vector<Arrival> arrivals;
  for (const int32_t source : arriving) {
    arrivals.push_back(
        {.at = Instant{static_cast<int64_t>(arrivals.size()) + 1}, .source = source});
  }
  const std::vector<int64_t> no_time(operations_.size(), 0);
  std::vector<Ready> ready;
  Starts starts{.at = std::vector<int32_t>(operations_.size(), -1)};
  Run(Instant{}, arrivals, no_time.data(), ready, starts);
  return std::move(starts.at);
}

bool LaneSchedule::RunsInOrderOfArrival(const Program& graph) const {
  if (!roots_.empty() || !sinks_.empty() || sources_.empty()) return false;
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (first_target_[i + 1] - first_target_[i] > 1 ||
        graph.lane(sources_[i]) != graph.lane(sources_.front()))
      return false;
  }
  // No operation releases another, and each waits for one source.
  if (first_target_.back() != first_target_[sources_.size()]) return false;
  return std::all_of(pending_counts_.begin(), pending_counts_.end(),
                     [](int32_t count) { return count == 1; });
}

}  // namespace stepcast
