#include "core/network/path_network.h"

#include <algorithm>
#include <utility>

#include "core/base/index.h"

namespace stepcast {

PathNetwork::PathNetwork(int32_t lanes, std::vector<Link> links, std::vector<FlowPath> paths)
    : lanes_(lanes),
      links_(std::move(links)),
      paths_(std::move(paths)),
      flows_(paths_.size()),
      clocks_(links_.size()),
      states_(links_.size()),
      carried_(Index(lanes), 0) {}

PathNetwork PathNetwork::Star(int32_t hubs, const std::vector<int64_t>& worker_capacities) {
  std::vector<Link> links(Index(hubs));
  std::vector<FlowPath> paths;
  for (const int64_t capacity : worker_capacities) {
    const auto own = static_cast<LinkIndex>(links.size());
    links.push_back({.capacity = std::min(capacity, kUnit * hubs), .is_shared = false});
    for (LinkIndex hub = 0; hub < hubs; ++hub) paths.push_back({.links = {hub, own}, .count = 2});
  }
  return {hubs, std::move(links), std::move(paths)};
}

void PathNetwork::TakeEnded(Instant now, std::vector<Flow>& ended) {
  const auto left = std::stable_partition(active_.begin(), active_.end(),
                                          [&](Flow flow) { return EndOf(flow) > now; });
  ended.insert(ended.end(), left, active_.end());
  active_.erase(left, active_.end());
  changed_ = true;
}

void PathNetwork::Start(Flow flow, Span work) {
  flows_[Index(flow)] = {.remaining = work.ticks};
  active_.insert(std::lower_bound(active_.begin(), active_.end(), flow), flow);
  carried_[Index(flow % lanes_)] += work.ticks;
  changed_ = true;
}

Instant PathNetwork::Settle(Instant now) {
  settle_cost_ = 0;
  if (!changed_) return next_end_;
  Fill();
  ApplyLevels(now);
  changed_ = false;
  next_end_ = kEndOfTime;
  for (const Flow flow : active_) next_end_ = std::min(next_end_, EndOf(flow));
  return next_end_;
}

int64_t PathNetwork::CarriedBy(Instant now, int32_t lane) const {
  int64_t left = 0;
  for (const Flow flow : active_) {
    if (flow % lanes_ == lane) left += RemainingAt(flow, now);
  }
  return carried_[Index(lane)] - left;
}

int64_t PathNetwork::RemainingAt(Flow flow, Instant now) const {
  const FlowState& state = flows_[Index(flow)];
  switch (state.place) {
    case Place::kAtLink:
      return state.virtual_end - clocks_[Index(state.link)].VirtualAt(now);
    case Place::kHeld:
      return state.remaining -
             LinkLevel{.residual = state.rate, .flows = 1}.WorkIn(now - state.anchor);
    case Place::kNew:
      break;
  }
  return state.remaining;
}

Instant PathNetwork::EndOf(Flow flow) const {
  const FlowState& state = flows_[Index(flow)];
  if (state.place == Place::kAtLink) return clocks_[Index(state.link)].InstantOf(state.virtual_end);
  const Instant end =
      state.anchor + LinkLevel{.residual = state.rate, .flows = 1}.TimeFor(state.remaining);
  return std::min(end, kEndOfTime);
}

int64_t PathNetwork::LevelOf(LinkIndex link) const {
  const LinkState& state = states_[Index(link)];
  const int64_t whole = state.residual / state.flows;
  return links_[Index(link)].is_shared ? whole : std::max(whole, int64_t{1});
}

void PathNetwork::Fill() {
  for (size_t i = 0; i < states_.size(); ++i) states_[i] = {.residual = links_[i].capacity};
  for (const Flow flow : active_) {
    for (const LinkIndex link : paths_[Index(flow)].all()) ++states_[Index(link)].flows;
  }
  waiting_ = active_;
  while (!waiting_.empty()) FreezeFlowsOfLowestLinks();
}

void PathNetwork::FreezeFlowsOfLowestLinks() {
  settle_cost_ += static_cast<int64_t>(states_.size() + waiting_.size());
  // All shared links of the lowest level at once, or, where none has it, all own ones.
  int64_t level = LinkLevel::kUnbounded;
  bool is_shared = false;
  for (LinkIndex link = 0; Index(link) < states_.size(); ++link) {
    if (states_[Index(link)].flows == 0) continue;
    const int64_t own_level = LevelOf(link);
    if (own_level < level) is_shared = false;
    level = std::min(level, own_level);
    if (own_level == level) is_shared = is_shared || links_[Index(link)].is_shared;
  }
  for (LinkIndex link = 0; Index(link) < states_.size(); ++link) {
    LinkState& state = states_[Index(link)];
    state.is_new =
        state.flows > 0 && links_[Index(link)].is_shared == is_shared && LevelOf(link) == level;
    if (!state.is_new) continue;
    state.level = is_shared ? LinkLevel{.residual = state.residual, .flows = state.flows}
                            : LinkLevel{.residual = level, .flows = 1};
  }
  const auto is_frozen = [&](Flow flow) {
    const std::span<const LinkIndex> path = paths_[Index(flow)].all();
    return std::any_of(path.begin(), path.end(),
                       [&](LinkIndex link) { return states_[Index(link)].is_new; });
  };
  const auto frozen = std::stable_partition(waiting_.begin(), waiting_.end(),
                                            [&](Flow flow) { return !is_frozen(flow); });
  for (auto flow = frozen; flow != waiting_.end(); ++flow) {
    for (const LinkIndex link : paths_[Index(*flow)].all()) {
      states_[Index(link)].residual -= level;
      --states_[Index(link)].flows;
    }
  }
  waiting_.erase(frozen, waiting_.end());
}

void PathNetwork::ApplyLevels(Instant now) {
  for (size_t link = 0; link < clocks_.size(); ++link) {
    if (links_[link].is_shared) clocks_[link].SetLevel(now, states_[link].level);
  }
  for (const Flow flow : active_) {
    int64_t own = LinkLevel::kUnbounded;
    int64_t shared = LinkLevel::kUnbounded;
    LinkIndex lowest = -1;  // of the shared ones
    for (const LinkIndex link : paths_[Index(flow)].all()) {
      const int64_t whole = states_[Index(link)].level.Whole();
      if (!links_[Index(link)].is_shared) {
        own = std::min(own, whole);
      } else if (whole < shared || lowest < 0) {
        shared = whole;
        lowest = link;
      }
    }
    FlowState& state = flows_[Index(flow)];
    if (lowest >= 0 && own >= shared) {
      if (state.place != Place::kAtLink || state.link != lowest) {
        const int64_t end = clocks_[Index(lowest)].VirtualAt(now) + RemainingAt(flow, now);
        state = {.place = Place::kAtLink, .link = lowest, .virtual_end = end};
      }
    } else if (state.place != Place::kHeld || state.rate != own) {
      state = {
          .place = Place::kHeld, .remaining = RemainingAt(flow, now), .anchor = now, .rate = own};
    }
  }
}

}  // namespace stepcast
