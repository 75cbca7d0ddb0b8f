#include "core/network/max_min_levels.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace stepcast {

namespace {

constexpr int64_t kUnbounded = LinkLevel::kUnbounded;

// More than the servers together makes no difference, and keeps all sums small.
std::vector<int64_t> Clipped(std::vector<int64_t> capacities, int32_t servers) {
  for (int64_t& capacity : capacities) capacity = std::min(capacity, LinkLevel::kUnit * servers);
  return capacities;
}

}  // namespace

MaxMinLevels::MaxMinLevels(int32_t servers, std::vector<int64_t> worker_capacities)
    : servers_(Index(servers)),
      workers_(worker_capacities.size()),
      whole_(Index(servers), kUnbounded),
      used_(servers_.size() * workers_.size()),
      used_position_(used_.size()),
      bound_position_(used_.size()),
      allowances_(servers_.size(), Clipped(worker_capacities, servers)) {
  worker_capacities = Clipped(std::move(worker_capacities), servers);
  for (size_t worker = 0; worker < workers_.size(); ++worker)
    workers_[worker].capacity = worker_capacities[worker];
}

void MaxMinLevels::Join(int32_t worker, int32_t server) {
  Worker& state = workers_[Index(worker)];
  used_position_[Slot(worker, server)] = state.used;
  used_[Slot(worker, state.used++)] = server;
  if (state.level == kUnbounded) {
    ++servers_[Index(server)].unbound;
  } else {
    AddBound(worker, server, state.level);
  }
  MarkServer(server);
  MarkWorker(worker);
}

void MaxMinLevels::Leave(int32_t worker, int32_t server) {
  Worker& state = workers_[Index(worker)];
  const int32_t position = used_position_[Slot(worker, server)];
  const int32_t last = used_[Slot(worker, --state.used)];
  used_[Slot(worker, position)] = last;
  used_position_[Slot(worker, last)] = position;
  if (state.level == kUnbounded) {
    // Of a link that holds nothing, less use changes nothing.
    allowances_.Release(worker, server);
    --servers_[Index(server)].unbound;
  } else {
    RemoveBound(worker, server);
    MarkWorker(worker);
  }
  MarkServer(server);
}

void MaxMinLevels::Update() {
  for (const int32_t server : changed_servers_) servers_[Index(server)].is_changed = false;
  for (const int32_t worker : changed_workers_) workers_[Index(worker)].is_changed = false;
  changed_servers_.clear();
  changed_workers_.clear();
  cost_ = 0;
  while (!dirty_servers_.empty() || !dirty_workers_.empty()) {
    round_.swap(dirty_servers_);
    for (const int32_t server : round_) UpdateServer(server);
    round_.clear();
    round_.swap(dirty_workers_);
    for (const int32_t worker : round_) UpdateWorker(worker);
    round_.clear();
  }
}

void MaxMinLevels::MarkServer(int32_t server) {
  if (!std::exchange(servers_[Index(server)].is_dirty, true)) dirty_servers_.push_back(server);
}

void MaxMinLevels::MarkWorker(int32_t worker) {
  if (!std::exchange(workers_[Index(worker)].is_dirty, true)) dirty_workers_.push_back(worker);
}

// From below: each round takes out the workers that the level so far shows to be lower, which
// raises it.
LinkLevel MaxMinLevels::FillServer(const Server& server) {
  const auto bound = static_cast<int64_t>(server.bound.size());
  if (bound == 0) return {.residual = LinkLevel::kUnit, .flows = server.unbound};
  // Then every round takes one out, whatever the levels are.
  if (server.unbound == 0 && server.bound_levels + bound <= LinkLevel::kUnit)
    return {.residual = LinkLevel::kUnit, .flows = 0};
  LinkLevel level{.residual = LinkLevel::kUnit, .flows = server.unbound + bound};
  for (int64_t lower = 0, lower_before = -1; lower != lower_before;) {
    lower_before = lower;
    lower = 0;
    int64_t residual = LinkLevel::kUnit;
    const int64_t whole = level.Whole();
    for (const BoundWorker& own : server.bound) {
      const bool is_lower = own.level < whole;
      lower += is_lower ? 1 : 0;
      residual -= is_lower ? own.level : 0;
    }
    cost_ += bound;
    level = {.residual = residual, .flows = server.unbound + bound - lower};
  }
  return level;
}

// The most that all flows whose server gives more can have; kUnbounded where all can have what
// their servers give.
int64_t MaxMinLevels::FillWorker(int32_t worker) {
  const std::span<const int32_t> used = ServersOf(worker);
  const int64_t capacity = workers_[Index(worker)].capacity;
  int64_t sum = 0;
  for (const int32_t server : used) sum += whole_[Index(server)];
  cost_ += static_cast<int64_t>(used.size());
  if (sum <= capacity) return kUnbounded;
  // From below, as with a server: 0 is below all.
  for (int64_t level = 0;;) {
    int64_t residual = capacity;
    int64_t flows = 0;
    for (const int32_t server : used) {
      const bool is_lower = whole_[Index(server)] <= level;
      flows += is_lower ? 0 : 1;
      residual -= is_lower ? whole_[Index(server)] : 0;
    }
    const int64_t raised = std::max({residual / std::max(flows, int64_t{1}), level, int64_t{1}});
    if (raised == level) return level;
    level = raised;
  }
}

void MaxMinLevels::UpdateServer(int32_t server) {
  Server& state = servers_[Index(server)];
  state.is_dirty = false;
  ++cost_;
  const LinkLevel level = FillServer(state);
  if (level.residual == state.level.residual && level.flows == state.level.flows) return;
  state.level = level;
  if (!std::exchange(state.is_changed, true)) changed_servers_.push_back(server);
  const int64_t from = std::exchange(whole_[Index(server)], level.Whole());
  const int64_t to = whole_[Index(server)];
  if (from == to) return;
  const int64_t lower = std::min(from, to);
  for (const BoundWorker& own : state.bound) {
    if (lower <= own.level) MarkWorker(own.worker);
  }
  cost_ += static_cast<int64_t>(state.bound.size());
  if (to < from) return;
  for (int32_t worker = allowances_.TakeExceeded(server, to); worker >= 0;
       worker = allowances_.TakeExceeded(server, to))
    MarkWorker(worker);
}

void MaxMinLevels::UpdateWorker(int32_t worker) {
  Worker& state = workers_[Index(worker)];
  state.is_dirty = false;
  ++cost_;
  const int64_t from = state.level;
  const int64_t to = FillWorker(worker);
  if (from != to) {
    state.level = to;
    if (!std::exchange(state.is_changed, true)) changed_workers_.push_back(worker);
    for (const int32_t server : ServersOf(worker)) MoveWorker(worker, server, from, to);
  }
  if (to == kUnbounded) allowances_.Cover(worker, ServersOf(worker), whole_);
}

void MaxMinLevels::AddBound(int32_t worker, int32_t server, int64_t level) {
  Server& state = servers_[Index(server)];
  bound_position_[Slot(worker, server)] = static_cast<int32_t>(state.bound.size());
  state.bound.push_back({.worker = worker, .level = level});
  state.bound_levels += level;
}

void MaxMinLevels::RemoveBound(int32_t worker, int32_t server) {
  Server& state = servers_[Index(server)];
  const int32_t position = bound_position_[Slot(worker, server)];
  state.bound_levels -= state.bound[Index(position)].level;
  state.bound[Index(position)] = state.bound.back();
  bound_position_[Slot(state.bound.back().worker, server)] = position;
  state.bound.pop_back();
}

void MaxMinLevels::MoveWorker(int32_t worker, int32_t server, int64_t from, int64_t to) {
  Server& state = servers_[Index(server)];
  if (from == kUnbounded) {
    allowances_.Release(worker, server);
    --state.unbound;
    AddBound(worker, server, to);
  } else if (to == kUnbounded) {
    RemoveBound(worker, server);
    ++state.unbound;
  } else {
    BoundWorker& own = state.bound[Index(bound_position_[Slot(worker, server)])];
    state.bound_levels += to - std::exchange(own.level, to);
  }
  if (std::min(from, to) < whole_[Index(server)]) MarkServer(server);
}

}  // namespace stepcast
