#include "core/network/turns_network.h"

#include <algorithm>
#include <utility>

#include "core/base/index.h"
#include "core/network/link_level.h"

namespace stepcast {

TurnsNetwork::TurnsNetwork(Options options, std::vector<int64_t> worker_capacities)
    : options_(options),
      links_(Index(options.hubs) + worker_capacities.size()),
      flows_(Index(options.hubs) * worker_capacities.size()),
      ends_(links_.size()) {
  for (LinkIndex hub = 0; hub < options.hubs; ++hub) links_[Index(hub)].capacity = LinkLevel::kUnit;
  for (size_t worker = 0; worker < worker_capacities.size(); ++worker) {
    const LinkIndex own = options.hubs + static_cast<LinkIndex>(worker);
    links_[Index(own)].capacity = worker_capacities[worker];
    const bool binds = worker_capacities[worker] / options.hubs < LinkLevel::kUnit;
    for (LinkIndex hub = 0; hub < options.hubs; ++hub) {
      FlowState& flow = flows_[worker * Index(options.hubs) + Index(hub)];
      flow.first = binds && options.from_workers ? own : hub;
      if (!binds) continue;
      flow.second = options.from_workers ? hub : own;
      links_[Index(flow.second)].most_passing =
          options.from_workers ? static_cast<int32_t>(worker_capacities.size()) : options.hubs;
    }
  }
}

void TurnsNetwork::TakeEnded(Instant /*now*/, std::vector<Flow>& ended) {
  ending_.clear();
  ends_.AppendTops(ending_);
  for (const LinkIndex link : ending_) EndPiece(link, ended);
}

void TurnsNetwork::TakeDelivered(Instant /*now*/, std::vector<Flow>& delivered) {
  delivered.insert(delivered.end(), delivered_.begin(), delivered_.end());
  delivered_.clear();
}

void TurnsNetwork::EndPiece(LinkIndex link, std::vector<Flow>& ended) {
  Link& of = links_[Index(link)];
  const int64_t piece = std::exchange(of.piece, 0);
  of.turn_left -= piece;
  of.carried += piece;
  ends_.Remove(link);
  Touch(link);
  FlowState& flow = flows_[Index(of.serving)];
  if (link != flow.first) {
    flow.arrived += piece;
    if (flow.chunks.empty() || flow.arrived < flow.chunks.front()) return;
    flow.chunks.pop_front();
    delivered_.push_back(of.serving);
    return;
  }
  flow.left -= piece;
  flow.passed += piece;
  if (flow.second != kNone) arriving_.push_back(of.serving);
  if (flow.left > 0) return;
  ended.push_back(of.serving);
  if (flow.second == kNone) {
    delivered_.push_back(of.serving);
  } else {
    flow.chunks.push_back(flow.passed);
  }
}

void TurnsNetwork::Start(Flow flow, Span work) {
  FlowState& state = flows_[Index(flow)];
  state.left = work.ticks;
  // Only a flow whose chunk has just ended is still the one that is served.
  if (links_[Index(state.first)].serving == flow) return;
  if (state.arrived == state.passed || state.second == kNone) state.is_new = true;
  starting_.push_back(flow);
}

Instant TurnsNetwork::Settle(Instant now) {
  std::sort(starting_.begin(), starting_.end());
  for (const Flow flow : starting_) {
    const LinkIndex first = flows_[Index(flow)].first;
    links_[Index(first)].newcomers.push_back(flow);
    Touch(first);
  }
  starting_.clear();
  std::sort(arriving_.begin(), arriving_.end());
  for (const Flow flow : arriving_) JoinSecond(flow);
  arriving_.clear();
  settle_cost_ = static_cast<int64_t>(touched_.size());
  for (const LinkIndex link : touched_) {
    links_[Index(link)].is_touched = false;
    Serve(link, now);
  }
  touched_.clear();
  return ends_.empty() ? kEndOfTime : Instant{ends_.TopKey()};
}

int64_t TurnsNetwork::CarriedBy(Instant now, int32_t hub) const {
  const Link& link = links_[Index(hub)];
  return link.carried + (link.piece > 0 ? (now - link.begin).ticks : 0);
}

void TurnsNetwork::Touch(LinkIndex link) {
  if (!std::exchange(links_[Index(link)].is_touched, true)) touched_.push_back(link);
}

void TurnsNetwork::JoinSecond(Flow flow) {
  FlowState& state = flows_[Index(flow)];
  Touch(state.second);
  if (std::exchange(state.is_lined_up, true)) return;
  Link& link = links_[Index(state.second)];
  (state.is_new ? link.newcomers : link.others).push_back(flow);
}

int64_t TurnsNetwork::LeftAt(LinkIndex link, Flow flow) const {
  const FlowState& state = flows_[Index(flow)];
  if (link == state.first) return state.left;
  return (state.chunks.empty() ? state.passed : state.chunks.front()) - state.arrived;
}

std::deque<TurnsNetwork::Flow>& TurnsNetwork::NextLine(LinkIndex link) {
  Link& of = links_[Index(link)];
  const bool is_newcomer =
      !of.newcomers.empty() && (of.others.empty() || of.passing < of.most_passing);
  of.passing = is_newcomer && !of.others.empty() ? of.passing + 1 : 0;
  return is_newcomer ? of.newcomers : of.others;
}

void TurnsNetwork::Serve(LinkIndex link, Instant now) {
  Link& of = links_[Index(link)];
  if (of.piece > 0) return;
  if (of.serving != kNone && (of.turn_left == 0 || LeftAt(link, of.serving) == 0)) {
    const Flow flow = std::exchange(of.serving, kNone);
    const bool goes_on = LeftAt(link, flow) > 0;
    if (goes_on) of.others.push_back(flow);
    if (link == flows_[Index(flow)].second) flows_[Index(flow)].is_lined_up = goes_on;
  }
  if (of.serving == kNone) {
    std::deque<Flow>& line = NextLine(link);
    if (line.empty()) return;
    of.serving = line.front();
    line.pop_front();
    of.turn_left = options_.turn.ticks;
    FlowState& flow = flows_[Index(of.serving)];
    if (link == flow.second) flow.is_new = false;
  }
  of.piece = std::min(of.turn_left, LeftAt(link, of.serving));
  of.begin = now;
  const Span time = LinkLevel::OfUnits(of.capacity).TimeFor(of.piece);
  ends_.Set(link, std::min(now + time, kEndOfTime).ticks);
}

}  // namespace stepcast
