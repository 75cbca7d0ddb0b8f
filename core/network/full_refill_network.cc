#include "core/network/full_refill_network.h"

#include <algorithm>

namespace stepcast {

FullRefillNetwork::FullRefillNetwork(int32_t servers, std::vector<int64_t> worker_capacities)
    : servers_(servers),
      worker_capacities_(std::move(worker_capacities)),
      flows_(worker_capacities_.size() * static_cast<size_t>(servers)),
      clocks_(static_cast<size_t>(servers)),
      links_(worker_capacities_.size() + static_cast<size_t>(servers)),
      carried_(static_cast<size_t>(servers), 0) {}

void FullRefillNetwork::TakeEnded(Instant now, std::vector<Flow>& ended) {
  const auto left = std::stable_partition(active_.begin(), active_.end(),
                                          [&](Flow flow) { return EndOf(flow) > now; });
  ended.insert(ended.end(), left, active_.end());
  active_.erase(left, active_.end());
  changed_ = true;
}

void FullRefillNetwork::Start(Flow flow, Span work) {
  flows_[static_cast<size_t>(flow)] = {.remaining = work.ticks};
  active_.insert(std::lower_bound(active_.begin(), active_.end(), flow), flow);
  carried_[ServerLink(flow)] += work.ticks;
  changed_ = true;
}

Instant FullRefillNetwork::Settle(Instant now) {
  settle_cost_ = 0;
  if (!changed_) return next_end_;
  Fill();
  ApplyLevels(now);
  changed_ = false;
  next_end_ = kEndOfTime;
  for (const Flow flow : active_) next_end_ = std::min(next_end_, EndOf(flow));
  return next_end_;
}

int64_t FullRefillNetwork::CarriedBy(Instant now, int32_t server) const {
  int64_t left = 0;
  for (const Flow flow : active_) {
    if (flow % servers_ == server) left += RemainingAt(flow, now);
  }
  return carried_[static_cast<size_t>(server)] - left;
}

int64_t FullRefillNetwork::RemainingAt(Flow flow, Instant now) const {
  const FlowState& state = flows_[static_cast<size_t>(flow)];
  switch (state.place) {
    case Place::kAtServer:
      return state.virtual_end - clocks_[ServerLink(flow)].VirtualAt(now);
    case Place::kHeld:
      return state.remaining -
             LinkLevel{.residual = state.rate, .flows = 1}.WorkIn(now - state.anchor);
    case Place::kNew:
      break;
  }
  return state.remaining;
}

Instant FullRefillNetwork::EndOf(Flow flow) const {
  const FlowState& state = flows_[static_cast<size_t>(flow)];
  if (state.place == Place::kAtServer)
    return clocks_[ServerLink(flow)].InstantOf(state.virtual_end);
  const Instant end =
      state.anchor + LinkLevel{.residual = state.rate, .flows = 1}.TimeFor(state.remaining);
  return std::min(end, kEndOfTime);
}

int64_t FullRefillNetwork::LevelOf(size_t link) const {
  const int64_t whole = links_[link].residual / links_[link].flows;
  return IsServer(link) ? whole : std::max(whole, int64_t{1});
}

void FullRefillNetwork::Fill() {
  for (size_t i = 0; i < links_.size(); ++i) {
    const int64_t capacity =
        IsServer(i)
            ? kUnit
            : std::min(worker_capacities_[i - static_cast<size_t>(servers_)], kUnit * servers_);
    links_[i] = {.residual = capacity};
  }
  for (const Flow flow : active_) {
    ++links_[ServerLink(flow)].flows;
    ++links_[WorkerLink(flow)].flows;
  }
  waiting_ = active_;
  while (!waiting_.empty()) FreezeFlowsOfLowestLinks();
}

void FullRefillNetwork::FreezeFlowsOfLowestLinks() {
  settle_cost_ += static_cast<int64_t>(links_.size() + waiting_.size());
  size_t lowest = ServerLink(waiting_.front());
  for (size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].flows > 0 && LevelOf(i) < LevelOf(lowest)) lowest = i;
  }
  // All servers of that level at once, or, where no server has it, all workers.
  const int64_t level = LevelOf(lowest);
  for (size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].flows == 0 || IsServer(i) != IsServer(lowest) || LevelOf(i) != level) continue;
    links_[i].level = IsServer(i)
                          ? LinkLevel{.residual = links_[i].residual, .flows = links_[i].flows}
                          : LinkLevel{.residual = level, .flows = 1};
  }
  const auto is_frozen = [&](Flow flow) {
    return links_[IsServer(lowest) ? ServerLink(flow) : WorkerLink(flow)].level.flows > 0;
  };
  const auto frozen = std::stable_partition(waiting_.begin(), waiting_.end(),
                                            [&](Flow flow) { return !is_frozen(flow); });
  for (auto flow = frozen; flow != waiting_.end(); ++flow) {
    for (const size_t index : {ServerLink(*flow), WorkerLink(*flow)}) {
      links_[index].residual -= level;
      --links_[index].flows;
    }
  }
  waiting_.erase(frozen, waiting_.end());
}

void FullRefillNetwork::ApplyLevels(Instant now) {
  for (size_t server = 0; server < clocks_.size(); ++server)
    clocks_[server].SetLevel(now, links_[server].level);
  for (const Flow flow : active_) {
    FlowState& state = flows_[static_cast<size_t>(flow)];
    const int64_t own = links_[WorkerLink(flow)].level.Whole();
    if (own >= links_[ServerLink(flow)].level.Whole()) {
      if (state.place != Place::kAtServer) {
        const int64_t end = clocks_[ServerLink(flow)].VirtualAt(now) + RemainingAt(flow, now);
        state = {.place = Place::kAtServer, .virtual_end = end};
      }
    } else if (state.place != Place::kHeld || state.rate != own) {
      state = {
          .place = Place::kHeld, .remaining = RemainingAt(flow, now), .anchor = now, .rate = own};
    }
  }
}

}  // namespace stepcast
