#include "core/network/max_min_levels.h"

#include <cassert>

namespace stepcast {

namespace {

constexpr int64_t kUnbounded = LinkLevel::kUnbounded;

// More than the hubs together makes no difference, and keeps all sums small.
std::vector<int64_t> Clipped(std::vector<int64_t> capacities, int32_t hubs) {
  for (int64_t& capacity : capacities) capacity = std::min(capacity, LinkLevel::kUnit * hubs);
  return capacities;
}

}  // namespace

MaxMinLevels::MaxMinLevels(int32_t hubs, std::vector<int64_t> worker_capacities)
    : hubs_(Index(hubs)),
      workers_(worker_capacities.size()),
      whole_(Index(hubs), kUnbounded),
      used_(hubs_.size() * workers_.size()),
      used_position_(used_.size()),
      bound_position_(used_.size()),
      allowances_(hubs_.size(), Clipped(worker_capacities, hubs)) {
  worker_capacities = Clipped(std::move(worker_capacities), hubs);
  for (size_t worker = 0; worker < workers_.size(); ++worker)
    workers_[worker].capacity = worker_capacities[worker];
}

void MaxMinLevels::Join(int32_t worker, int32_t hub) {
  Worker& state = workers_[Index(worker)];
  used_position_[Slot(worker, hub)] = state.used;
  used_[Slot(worker, state.used++)] = hub;
  if (state.level == kUnbounded) {
    ++hubs_[Index(hub)].unbound;
  } else {
    AddBound(worker, hub, state.level);
  }
  MarkHub(hub);
  MarkWorker(worker);
}

void MaxMinLevels::Leave(int32_t worker, int32_t hub) {
  Worker& state = workers_[Index(worker)];
  const int32_t position = used_position_[Slot(worker, hub)];
  const int32_t last = used_[Slot(worker, --state.used)];
  used_[Slot(worker, position)] = last;
  used_position_[Slot(worker, last)] = position;
  if (state.level == kUnbounded) {
    // A link that holds nothing back is not changed by less use.
    --hubs_[Index(hub)].unbound;
  } else {
    RemoveBound(worker, hub);
    MarkWorker(worker);
  }
  MarkHub(hub);
}

void MaxMinLevels::Update() {
  for (const int32_t hub : changed_hubs_) hubs_[Index(hub)].is_changed = false;
  for (const int32_t worker : changed_workers_) workers_[Index(worker)].is_changed = false;
  changed_hubs_.clear();
  changed_workers_.clear();
  cost_ = 0;
  while (!dirty_hubs_.empty() || !dirty_workers_.empty()) {
    round_.swap(dirty_hubs_);
    for (const int32_t hub : round_) UpdateHub(hub);
    round_.clear();
    round_.swap(dirty_workers_);
    for (const int32_t worker : round_) UpdateWorker(worker);
    round_.clear();
  }
}

void MaxMinLevels::MarkHub(int32_t hub) {
  if (!std::exchange(hubs_[Index(hub)].is_dirty, true)) dirty_hubs_.push_back(hub);
}

void MaxMinLevels::MarkWorker(int32_t worker) {
  if (!std::exchange(workers_[Index(worker)].is_dirty, true)) dirty_workers_.push_back(worker);
}

// From below: each round takes out the workers that the level so far shows to be lower, which
// raises it.
LinkLevel MaxMinLevels::FillHub(const Hub& hub) {
  const auto bound = static_cast<int64_t>(hub.bound.size());
  if (bound == 0) return {.residual = LinkLevel::kUnit, .flows = hub.unbound};
  // Then every round takes one out, whatever the levels are.
  if (hub.unbound == 0 && hub.bound_levels + bound <= LinkLevel::kUnit)
    return {.residual = LinkLevel::kUnit, .flows = 0};
  LinkLevel level{.residual = LinkLevel::kUnit, .flows = hub.unbound + bound};
  for (int64_t lower = 0, lower_before = -1; lower != lower_before;) {
    lower_before = lower;
    lower = 0;
    int64_t residual = LinkLevel::kUnit;
    const int64_t whole = level.Whole();
    for (const BoundWorker& own : hub.bound) {
      const bool is_lower = own.level < whole;
      lower += is_lower ? 1 : 0;
      residual -= is_lower ? own.level : 0;
    }
    cost_ += bound;
    level = {.residual = residual, .flows = hub.unbound + bound - lower};
  }
  return level;
}

// True if the worker's link cannot bind whatever the hubs give, or until an allowance is exceeded.
bool MaxMinLevels::HasEnough(int32_t worker) const {
  const Worker& state = workers_[Index(worker)];
  return state.used * LinkLevel::kUnit <= state.capacity ||
         allowances_.IsCovered(worker, HubsOf(worker), whole_);
}

// The most that all flows whose hub gives more can have; kUnbounded where all can have what
// their hubs give.
int64_t MaxMinLevels::FillWorker(int32_t worker) {
  const std::span<const int32_t> used = HubsOf(worker);
  const int64_t capacity = workers_[Index(worker)].capacity;
  int64_t sum = 0;
  for (const int32_t hub : used) sum += whole_[Index(hub)];
  cost_ += static_cast<int64_t>(used.size());
  if (sum <= capacity) return kUnbounded;
  // From below, as with a hub: 0 is below all.
  for (int64_t level = 0;;) {
    int64_t residual = capacity;
    int64_t flows = 0;
    for (const int32_t hub : used) {
      const bool is_lower = whole_[Index(hub)] <= level;
      flows += is_lower ? 0 : 1;
      residual -= is_lower ? whole_[Index(hub)] : 0;
    }
    const int64_t raised = std::max({residual / std::max(flows, int64_t{1}), level, int64_t{1}});
    if (raised == level) return level;
    level = raised;
  }
}

void MaxMinLevels::UpdateHub(int32_t hub) {
  Hub& state = hubs_[Index(hub)];
  state.is_dirty = false;
  ++cost_;
  const LinkLevel level = FillHub(state);
  if (level.residual == state.level.residual && level.flows == state.level.flows) return;
  state.level = level;
  if (!std::exchange(state.is_changed, true)) changed_hubs_.push_back(hub);
  const int64_t from = std::exchange(whole_[Index(hub)], level.Whole());
  const int64_t to = whole_[Index(hub)];
  if (from == to) return;
  const int64_t lower = std::min(from, to);
  for (const BoundWorker& own : state.bound) {
    if (lower <= own.level) MarkWorker(own.worker);
  }
  cost_ += static_cast<int64_t>(state.bound.size());
  if (to < from) return;
  for (int32_t worker = allowances_.TakeExceeded(hub, to); worker >= 0;
       worker = allowances_.TakeExceeded(hub, to)) {
    if (Uses(worker, hub)) MarkWorker(worker);
  }
}

void MaxMinLevels::UpdateWorker(int32_t worker) {
  Worker& state = workers_[Index(worker)];
  state.is_dirty = false;
  ++cost_;
  const int64_t from = state.level;
  if (from == kUnbounded && HasEnough(worker)) return;
  const int64_t to = FillWorker(worker);
  if (from != to) {
    state.level = to;
    if (!std::exchange(state.is_changed, true)) changed_workers_.push_back(worker);
    for (const int32_t hub : HubsOf(worker)) MoveWorker(worker, hub, from, to);
  }
  if (to == kUnbounded) allowances_.Cover(worker, HubsOf(worker), whole_);
}

void MaxMinLevels::AddBound(int32_t worker, int32_t hub, int64_t level) {
  Hub& state = hubs_[Index(hub)];
  bound_position_[Slot(worker, hub)] = static_cast<int32_t>(state.bound.size());
  state.bound.push_back({.worker = worker, .level = level});
  state.bound_levels += level;
}

void MaxMinLevels::RemoveBound(int32_t worker, int32_t hub) {
  Hub& state = hubs_[Index(hub)];
  const int32_t position = bound_position_[Slot(worker, hub)];
  state.bound_levels -= state.bound[Index(position)].level;
  state.bound[Index(position)] = state.bound.back();
  bound_position_[Slot(state.bound.back().worker, hub)] = position;
  state.bound.pop_back();
}

void MaxMinLevels::MoveWorker(int32_t worker, int32_t hub, int64_t from, int64_t to) {
  Hub& state = hubs_[Index(hub)];
  if (from == kUnbounded) {
    allowances_.Release(worker, hub);
    --state.unbound;
    AddBound(worker, hub, to);
  } else if (to == kUnbounded) {
    RemoveBound(worker, hub);
    ++state.unbound;
  } else {
    BoundWorker& own = state.bound[Index(bound_position_[Slot(worker, hub)])];
    state.bound_levels += to - std::exchange(own.level, to);
  }
  if (std::min(from, to) < whole_[Index(hub)]) MarkHub(hub);
}

}  // namespace stepcast
