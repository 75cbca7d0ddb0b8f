#include "core/network/max_min_network.h"

#include <algorithm>
#include <cassert>

namespace stepcast {

MaxMinNetwork::MaxMinNetwork(int32_t hubs, const std::vector<int64_t>& worker_capacities)
    : hub_count_(hubs),
      levels_(hubs, worker_capacities),
      flows_(worker_capacities.size() * Index(hubs)),
      hubs_(Index(hubs), HubState{.clock = {}, .ends = IndexedHeap(worker_capacities.size())}),
      ends_(Index(hubs) + flows_.size()) {}

void MaxMinNetwork::TakeEnded(Instant now, std::vector<Flow>& ended) {
  const size_t first = ended.size();
  if (ends_.HasOneTop()) {
    TakeEndedAt(ends_.Top(), now, ended);
  } else {
    ending_.clear();
    ends_.AppendTops(ending_);
    for (const int32_t slot : ending_) TakeEndedAt(slot, now, ended);
  }
  for (size_t i = first; i < ended.size(); ++i) {
    flows_[Index(ended[i])].is_busy = false;
    Touch(ended[i]);
  }
}

void MaxMinNetwork::TakeEndedAt(int32_t slot, Instant now, std::vector<Flow>& ended) {
  if (slot >= hub_count_) {
    ended.push_back(slot - hub_count_);
    return;
  }
  HubState& hub = hubs_[Index(slot)];
  // In a tick the clock advances by one at most, so it shows the very end that was due.
  const int64_t due = hub.ends.TopKey();
  assert(due == hub.clock.VirtualAt(now));
  hub.Show(now, due);
  if (hub.ends.HasOneTop()) {
    ended.push_back(hub.ends.Top() * hub_count_ + slot);
  } else {
    ending_workers_.clear();
    hub.ends.AppendTops(ending_workers_);
    for (const int32_t worker : ending_workers_) ended.push_back(worker * hub_count_ + slot);
  }
  MarkStale(slot);
}

void MaxMinNetwork::Start(Flow flow, Span work) {
  FlowState& state = flows_[Index(flow)];
  state.remaining = work.ticks;
  state.is_busy = true;
  state.is_starting = true;
  Touch(flow);
  hubs_[Index(HubOf(flow))].carried += work.ticks;
}

Instant MaxMinNetwork::Settle(Instant now) {
  settle_cost_ = static_cast<int64_t>(touched_.size());
  if (UpdateLevels()) ApplyLevels(now);
  PlaceStarting(now);
  RefreshEnds();
  return ends_.empty() ? kEndOfTime : Instant{ends_.TopKey()};
}

int64_t MaxMinNetwork::CarriedBy(Instant now, int32_t hub) const {
  const HubState& state = hubs_[Index(hub)];
  int64_t left = 0;
  const int64_t virtual_now = state.clock.VirtualAt(now);
  state.ends.ForEach([&](int32_t, int64_t virtual_end) { left += virtual_end - virtual_now; });
  for (const MaxMinLevels::BoundWorker& bound : levels_.BoundOn(hub)) {
    const FlowState& flow = flows_[Index(bound.worker * hub_count_ + hub)];
    if (flow.place == Place::kHeld) left += HeldRemaining(flow, now);
  }
  return state.carried - left;
}

void MaxMinNetwork::MarkStale(int32_t hub) {
  if (!std::exchange(hubs_[Index(hub)].is_stale, true)) stale_hubs_.push_back(hub);
}

void MaxMinNetwork::Touch(Flow flow) {
  if (!std::exchange(flows_[Index(flow)].is_touched, true)) touched_.push_back(flow);
}

int64_t MaxMinNetwork::HeldRemaining(const FlowState& state, Instant now) {
  return state.remaining - LinkLevel{.residual = state.rate, .flows = 1}.WorkIn(now - state.anchor);
}

bool MaxMinNetwork::UpdateLevels() {
  bool is_changed = false;
  for (const Flow flow : touched_) {
    const FlowState& state = flows_[Index(flow)];
    if (state.is_busy == (state.place != Place::kIdle)) continue;
    if (state.is_busy) {
      levels_.Join(WorkerOf(flow), HubOf(flow));
    } else {
      levels_.Leave(WorkerOf(flow), HubOf(flow));
    }
    is_changed = true;
  }
  if (!is_changed) return false;
  levels_.Update();
  settle_cost_ += levels_.cost();
  return true;
}

void MaxMinNetwork::ApplyLevels(Instant now) {
  for (const int32_t hub : levels_.changed_hubs()) {
    HubState& state = hubs_[Index(hub)];
    const LinkLevel& level = levels_.HubLevel(hub);
    if (level != state.clock.level()) state.clock.SetLevelAt(now, state.VirtualAt(now), level);
    MarkStale(hub);
    for (const MaxMinLevels::BoundWorker& bound : levels_.BoundOn(hub))
      PlaceFlow(bound.worker * hub_count_ + hub, now);
  }
  for (const int32_t worker : levels_.changed_workers()) {
    for (const int32_t hub : levels_.HubsOf(worker)) PlaceFlow(worker * hub_count_ + hub, now);
  }
}

void MaxMinNetwork::PlaceFlow(Flow flow, Instant now) {
  FlowState& state = flows_[Index(flow)];
  if (state.is_starting) return;  // its turn comes in PlaceStarting
  const int32_t worker = WorkerOf(flow);
  const int32_t hub = HubOf(flow);
  const bool is_held = levels_.IsHeld(worker, hub);
  if (is_held != (state.place == Place::kHeld) ||
      (is_held && state.rate != levels_.WorkerLevel(worker))) {
    if (state.place == Place::kAtHub) {
      HubState& at = hubs_[Index(hub)];
      state.remaining = at.ends.KeyOf(worker) - at.VirtualAt(now);
    } else {
      state.remaining = HeldRemaining(state, now);
    }
    Enter(flow, now);
  }
}

void MaxMinNetwork::Enter(Flow flow, Instant now) {
  FlowState& state = flows_[Index(flow)];
  const int32_t worker = WorkerOf(flow);
  const int32_t hub = HubOf(flow);
  const bool is_held = levels_.IsHeld(worker, hub);
  if (state.place != (is_held ? Place::kHeld : Place::kAtHub)) Leave(flow);
  if (is_held) {
    state.place = Place::kHeld;
    state.anchor = now;
    state.rate = levels_.WorkerLevel(worker);
    const Instant end =
        now + LinkLevel{.residual = state.rate, .flows = 1}.TimeFor(state.remaining);
    ends_.Set(HeldSlot(flow), std::min(end, kEndOfTime).ticks);
    return;
  }
  state.place = Place::kAtHub;
  HubState& at = hubs_[Index(hub)];
  at.ends.Set(worker, at.VirtualAt(now) + state.remaining);
  MarkStale(hub);
}

void MaxMinNetwork::Leave(Flow flow) {
  FlowState& state = flows_[Index(flow)];
  if (state.place == Place::kAtHub) {
    hubs_[Index(HubOf(flow))].ends.Remove(WorkerOf(flow));
    MarkStale(HubOf(flow));
  } else if (state.place == Place::kHeld) {
    ends_.Remove(HeldSlot(flow));
  }
  state.place = Place::kIdle;
}

void MaxMinNetwork::PlaceStarting(Instant now) {
  for (const Flow flow : touched_) {
    FlowState& state = flows_[Index(flow)];
    if (state.is_starting) {
      Enter(flow, now);
    } else {
      Leave(flow);
    }
    state.is_starting = false;
    state.is_touched = false;
  }
  touched_.clear();
}

void MaxMinNetwork::RefreshEnds() {
  for (const int32_t slot : stale_hubs_) {
    HubState& hub = hubs_[Index(slot)];
    hub.is_stale = false;
    if (hub.ends.empty()) {
      ends_.Remove(slot);
    } else {
      ends_.Set(slot, hub.clock.InstantOf(hub.ends.TopKey()).ticks);
    }
  }
  stale_hubs_.clear();
}

}  // namespace stepcast
