#include "core/engine/lane_schedule.h"

#include <algorithm>
#include <utility>

namespace stepcast {

LaneSchedule::LaneSchedule(const StepGraph& graph, std::vector<OpIndex> sources, std::vector<OpIndex> operations, std::vector<OpIndex> sinks)
    : sources_(std::move(sources)), operations_(std::move(operations)), sinks_(std::move(sinks)) {
  std::vector<int32_t> target_of(static_cast<size_t>(graph.size()), -1);
  int32_t targets = 0;
  for (const std::vector<OpIndex>* nodes : {&operations_, &sinks_}) {
    for (const OpIndex op : *nodes) target_of[static_cast<size_t>(op)] = targets++;
  }
  pending_counts_.assign(static_cast<size_t>(targets), 0);
  first_target_.push_back(0);
  for (const std::vector<OpIndex>* nodes : {&sources_, &operations_}) {
    for (const OpIndex op : *nodes) {
      for (const OpIndex dependent : graph.dependents(op)) {
        const int32_t target = target_of[static_cast<size_t>(dependent)];
        if (target < 0) continue;
        targets_.push_back(target);
        ++pending_counts_[static_cast<size_t>(target)];
      }
      first_target_.push_back(static_cast<int32_t>(targets_.size()));
    }
  }
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (pending_counts_[i] == 0) roots_.push_back(static_cast<int32_t>(i));
  }
  pending_.resize(pending_counts_.size());
  queue_.resize(operations_.size());
  in_order_of_arrival_ = RunsInOrderOfArrival(graph);
  if (!in_order_of_arrival_) return;
  for (size_t i = 0; i < sources_.size(); ++i) {
    only_target_.push_back(first_target_[i] == first_target_[i + 1] ? -1 : targets_[static_cast<size_t>(first_target_[i])]);
  }
}

bool LaneSchedule::RunsInOrderOfArrival(const StepGraph& graph) const {
  if (!roots_.empty() || !sinks_.empty() || sources_.empty()) return false;
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (first_target_[i + 1] - first_target_[i] > 1 || graph.lane(sources_[i]) != graph.lane(sources_.front())) return false;
  }
  // No operation releases another, and each waits for one source.
  if (first_target_.back() != first_target_[sources_.size()]) return false;
  return std::all_of(pending_counts_.begin(), pending_counts_.end(), [](int32_t count) { return count == 1; });
}

}  // namespace stepcast
