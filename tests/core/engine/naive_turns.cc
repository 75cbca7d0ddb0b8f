#include "tests/core/engine/naive_turns.h"

#include <algorithm>

namespace stepcast::testing {

std::vector<NaiveTurns::Which> NaiveTurns::PathOf(const Flow& flow) const {
  const Which hub{.own = false, .index = static_cast<size_t>(flow.second)};
  const Which own{.own = true, .index = flow.first};
  if (rules_.worker_rates[flow.first] >= rules_.server_rate * rules_.servers) return {hub};
  return rules_.from_workers ? std::vector{own, hub} : std::vector{hub, own};
}

void NaiveTurns::Start(const Flow& flow, const Exact& bytes) {
  chunk_left_[flow] = bytes;
  const auto first = links_.find(PathOf(flow).front());
  if (first != links_.end() && first->second.serving == flow) return;
  starting_.insert(flow);
  if (at_second_[flow].empty()) new_to_second_.insert(flow);
}

bool NaiveTurns::HasWork(const Which& which, const Flow& flow) const {
  if (IsSecond(which, flow)) return !at_second_.at(flow).empty();
  return chunk_left_.at(flow) > 0;
}

void NaiveTurns::GiveTurns() {
  for (const Flow& flow : starting_) links_[PathOf(flow).front()].newcomers.push_back(flow);
  starting_.clear();
  for (const Flow& flow : arriving_) {
    Link& link = links_[PathOf(flow).back()];
    const auto waits = [&](const std::list<Flow>& line) {
      return std::find(line.begin(), line.end(), flow) != line.end();
    };
    if (link.serving == flow || waits(link.newcomers) || waits(link.others)) continue;
    (new_to_second_.contains(flow) ? link.newcomers : link.others).push_back(flow);
    waits_at_second_ += link.serving.has_value() ? 1 : 0;
  }
  arriving_.clear();
  for (auto& [which, link] : links_) GiveTurn(which, link);
}

void NaiveTurns::GiveTurn(const Which& which, Link& link) {
  if (link.under_way.has_value()) return;
  if (link.serving.has_value() && (link.turn_left == 0 || !HasWork(which, *link.serving))) {
    if (HasWork(which, *link.serving)) link.others.push_back(*link.serving);
    link.serving.reset();
    turns_ended_ += 1;
  }
  if (!link.serving.has_value()) {
    const size_t flows =
        which.own ? static_cast<size_t>(rules_.servers) : rules_.worker_rates.size();
    const bool others_go = link.newcomers.empty() ||
                           (!link.others.empty() && IsSecondOfSome(which) && link.passing >= flows);
    std::list<Flow>& next = others_go ? link.others : link.newcomers;
    if (next.empty()) return;
    link.passing = others_go || link.others.empty() ? 0 : link.passing + 1;
    newcomers_first_ += !link.newcomers.empty() && !link.others.empty() ? 1 : 0;
    link.serving = next.front();
    next.pop_front();
    link.turn_left = rules_.turn_bytes;
    if (IsSecond(which, *link.serving)) new_to_second_.erase(*link.serving);
  }
  Exact available = 0;
  if (IsSecond(which, *link.serving)) {
    for (const Piece& piece : at_second_.at(*link.serving)) {
      available += piece.bytes;
      if (piece.ends_chunk) break;
    }
  } else {
    available = chunk_left_.at(*link.serving);
  }
  link.size = std::min(available, link.turn_left);
  link.under_way = link.size;
}

std::optional<Exact> NaiveTurns::NextSpan() const {
  std::optional<Exact> next;
  for (const auto& [which, link] : links_) {
    if (!link.under_way.has_value()) continue;
    const Exact span = *link.under_way / RateOf(which);
    if (!next.has_value() || span < *next) next = span;
  }
  return next;
}

void NaiveTurns::Advance(const Exact& span) {
  for (auto& [which, link] : links_) {
    if (link.under_way.has_value()) *link.under_way -= span * RateOf(which);
  }
  for (auto& [which, link] : links_) {
    if (link.under_way == Exact(0)) Pass(which, link);
  }
}

void NaiveTurns::Pass(const Which& which, Link& link) {
  const Flow flow = *link.serving;
  link.under_way.reset();
  link.turn_left -= link.size;
  if (!IsSecond(which, flow)) {
    chunk_left_[flow] -= link.size;
    const bool ends_chunk = chunk_left_[flow] == 0;
    if (ends_chunk) handed_over_.push_back(flow);
    if (PathOf(flow).size() == 1) {
      if (ends_chunk) delivered_.push_back(flow);
      return;
    }
    at_second_[flow].push_back({.bytes = link.size, .ends_chunk = ends_chunk});
    arriving_.insert(flow);
    return;
  }
  Exact passed = link.size;
  std::list<Piece>& pieces = at_second_[flow];
  while (passed > 0) {
    Piece& first = pieces.front();
    const Exact part = std::min(first.bytes, passed);
    first.bytes -= part;
    passed -= part;
    if (first.bytes > 0) continue;
    if (first.ends_chunk) delivered_.push_back(flow);
    pieces.pop_front();
  }
}

}  // namespace stepcast::testing
