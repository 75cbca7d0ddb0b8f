#include "core/network/max_min_network.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace stepcast {

namespace {

using Wide = unsigned __int128;

}  // namespace

MaxMinNetwork::MaxMinNetwork(int32_t servers, std::vector<int64_t> worker_capacities)
    : servers_(servers),
      worker_capacities_(std::move(worker_capacities)),
      flows_(worker_capacities_.size() * static_cast<size_t>(servers)),
      ends_(flows_.size()),
      links_(worker_capacities_.size() + static_cast<size_t>(servers)),
      filled_(flows_.size()),
      carried_(static_cast<size_t>(servers), 0) {}

void MaxMinNetwork::TakeEnded(Instant now, std::vector<Flow>& ended) {
  while (!ends_.empty() && ends_.TopKey() == now.ticks) {
    const Flow flow = ends_.Pop();
    flows_[static_cast<size_t>(flow)].active = false;
    active_.erase(std::lower_bound(active_.begin(), active_.end(), flow));
    ended.push_back(flow);
  }
  changed_ = true;
}

void MaxMinNetwork::Start(Flow flow, Span work) {
  FlowState& state = flows_[static_cast<size_t>(flow)];
  // The rate of 0 marks it as new; ApplyRates anchors it at the end of the instant.
  state = {.remaining = work.ticks, .anchor = {}, .rate = {}, .active = true};
  active_.insert(std::lower_bound(active_.begin(), active_.end(), flow), flow);
  carried_[ServerLink(flow)] += work.ticks;
  changed_ = true;
}

Instant MaxMinNetwork::Settle(Instant now) {
  settle_cost_ = 0;
  if (changed_) {
    Fill();
    ApplyRates(now);
    changed_ = false;
  }
  return ends_.empty() ? kEndOfTime : Instant{ends_.TopKey()};
}

int64_t MaxMinNetwork::CarriedBy(Instant now, int32_t server) const {
  int64_t left = 0;
  for (const Flow flow : active_) {
    if (flow % servers_ == server) left += RemainingAt(flows_[static_cast<size_t>(flow)], now);
  }
  return carried_[static_cast<size_t>(server)] - left;
}

int64_t MaxMinNetwork::RemainingAt(const FlowState& state, Instant now) {
  const Wide done =
      static_cast<Wide>((now - state.anchor).ticks) * static_cast<Wide>(state.rate.numerator) / static_cast<Wide>(state.rate.denominator);
  return state.remaining - static_cast<int64_t>(done);
}

Instant MaxMinNetwork::EndOf(const FlowState& state) {
  assert(state.rate.numerator > 0);
  const auto numerator = static_cast<Wide>(state.rate.numerator);
  const Wide span = (static_cast<Wide>(state.remaining) * static_cast<Wide>(state.rate.denominator) + numerator - 1) / numerator;
  const auto most = static_cast<Wide>((kEndOfTime - state.anchor).ticks);
  return state.anchor + Span{static_cast<int64_t>(std::min(span, most))};
}

void MaxMinNetwork::Fill() {
  for (size_t i = 0; i < links_.size(); ++i) {
    const auto server_count = static_cast<size_t>(servers_);
    links_[i] = {.residual = i < server_count ? kUnit : std::min(worker_capacities_[i - server_count], kUnit * servers_), .flows = 0};
  }
  for (const Flow flow : active_) {
    ++links_[ServerLink(flow)].flows;
    ++links_[WorkerLink(flow)].flows;
  }
  waiting_ = active_;
  while (!waiting_.empty()) FreezeFlowsOfTightestLinks();
}

void MaxMinNetwork::FreezeFlowsOfTightestLinks() {
  settle_cost_ += static_cast<int64_t>(links_.size() + waiting_.size());
  const Link* tightest = &links_[ServerLink(waiting_.front())];
  for (const Link& link : links_) {
    if (link.flows > 0 && link.residual * tightest->flows < tightest->residual * link.flows) tightest = &link;
  }
  const Link level = *tightest;
  const int64_t divisor = std::gcd(level.residual, level.flows * kUnit);
  const Rate rate{.numerator = level.residual / divisor, .denominator = level.flows * kUnit / divisor};
  const auto is_tight = [&](const Link& link) { return link.residual * level.flows == level.residual * link.flows; };
  // All links of the same level at once, judged before any of them changes.
  const auto frozen = std::stable_partition(waiting_.begin(), waiting_.end(),
                                            [&](Flow flow) { return !is_tight(links_[ServerLink(flow)]) && !is_tight(links_[WorkerLink(flow)]); });
  for (auto flow = frozen; flow != waiting_.end(); ++flow) {
    filled_[static_cast<size_t>(*flow)] = rate;
    for (const size_t index : {ServerLink(*flow), WorkerLink(*flow)}) {
      links_[index].residual -= level.residual / level.flows;
      --links_[index].flows;
    }
  }
  waiting_.erase(frozen, waiting_.end());
}

void MaxMinNetwork::ApplyRates(Instant now) {
  for (const Flow flow : active_) {
    FlowState& state = flows_[static_cast<size_t>(flow)];
    const Rate rate = filled_[static_cast<size_t>(flow)];
    if (state.rate == rate) continue;
    if (state.rate.numerator != 0) state.remaining = RemainingAt(state, now);
    state.anchor = now;
    state.rate = rate;
    ends_.Set(flow, EndOf(state).ticks);
  }
}

}  // namespace stepcast
