#include "core/orders/list_schedule.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "core/base/index.h"
#include "core/communication/parameter_servers.h"
#include "core/orders/transfer_graph.h"
#include "core/orders/transfer_ranks.h"

namespace stepcast {

namespace {

constexpr size_t kBitsPerWord = 64;
// Lanes that are looked at in the time of an operation.
constexpr int64_t kLanesPerOperation = 4;

// Kinds and dependencies; times do not matter to where a cut is.
TransferGraph WithoutTimes(const Program& graph) {
  std::vector<TransferGraph::Operation> operations;
  std::vector<TransferGraph::Dependency> dependencies;
  for (OpIndex op = 0; op < graph.size(); ++op) {
    operations.push_back({.kind = OrderingKindOf(graph, op)});
    for (const OpIndex after : graph.dependents(op))
      dependencies.push_back({.before = op, .after = after});
  }
  return {std::move(operations), dependencies};
}

}  // namespace

void ListSchedule::Unserved::Reset(size_t places) {
  words_.assign((places + kBitsPerWord - 1) / kBitsPerWord, 0);
  first_ = 0;
}

void ListSchedule::Unserved::Insert(size_t place) {
  words_[place / kBitsPerWord] |= uint64_t{1} << (place % kBitsPerWord);
  first_ = std::min(first_, place / kBitsPerWord);
}

int32_t ListSchedule::Unserved::PopFirst() {
  for (; first_ < words_.size(); ++first_) {
    uint64_t& word = words_[first_];
    if (word == 0) continue;
    const auto bit = static_cast<size_t>(std::countr_zero(word));
    word &= word - 1;
    return static_cast<int32_t>(first_ * kBitsPerWord + bit);
  }
  return -1;
}

ListSchedule::ListSchedule(const LeastStep& step)
    : step_(step),
      lanes_(step.graph().lanes().count()),
      servers_(ServerLanes::Of(step.graph()).servers),
      first_connection_(step.graph().lanes().first_link()),
      first_uplink_(ServerLanes{.servers = servers_}.Uplink(0)) {
  const Program& graph = step.graph();
  if (step.worker_link_binds())
    idle_network_.emplace(servers_, std::vector<int64_t>{step.worker_link_capacity()});
  for (OpIndex op = 0; op < graph.size(); ++op) {
    if (IsDownlink(graph.lane(op))) downloads_.push_back(op);
  }
  std::vector<OpIndex> operations(Index(graph.size()));
  std::iota(operations.begin(), operations.end(), 0);
  Schedule(std::move(operations));
}

absl::StatusOr<ListSchedule> ListSchedule::Make(const LeastStep& step, StopCheck stop) {
  ListSchedule schedule(step);
  if (absl::Status status = stop(); !status.ok()) return status;
  if (absl::Status status = schedule.FindCut(stop); !status.ok()) return status;
  return schedule;
}

absl::Status ListSchedule::FindCut(StopCheck stop) {
  const TransferGraph graph = WithoutTimes(step_.graph());
  if (absl::Status status = stop(); !status.ok()) return status;
  GraphCut cut = FirstCutBehindDownloads(graph);
  if (cut.operation < 0 || cut.up_to_it.size() == Index(graph.size())) return stop();
  if (absl::Status status = stop(); !status.ok()) return status;
  std::vector<int32_t> any(downloads_.size());
  std::iota(any.begin(), any.end(), 0);
  const Span whole = Makespan(any);
  if (absl::Status status = stop(); !status.ok()) return status;
  Schedule(std::move(cut.up_to_it));
  after_cut_ = whole - Makespan(any);
  return stop();
}

int64_t ListSchedule::cost() const {
  return static_cast<int64_t>(scheduled_.size()) * (1 + lanes_ / kLanesPerOperation) / 2 + 1;
}

void ListSchedule::Schedule(std::vector<OpIndex> operations) {
  const Program& graph = step_.graph();
  scheduled_ = std::move(operations);
  std::vector<int32_t> place(Index(graph.size()), -1);
  for (size_t i = 0; i < scheduled_.size(); ++i)
    place[Index(scheduled_[i])] = static_cast<int32_t>(i);
  compact_ = {};
  computations_ = {};
  lines_.assign(Index(lanes_), {});
  for (const OpIndex op : scheduled_) {
    compact_.lane.push_back(graph.lane(op));
    compact_.pending.push_back(graph.dependency_count(op));
    if (graph.dependency_count(op) == 0) compact_.roots.push_back(place[Index(op)]);
    compact_.work.push_back(graph.work(op));
    compact_.duration.push_back(step_.duration(op));
    compact_.first_dependent.push_back(static_cast<int32_t>(compact_.dependents.size()));
    for (const OpIndex dependent : graph.dependents(op)) {
      if (place[Index(dependent)] >= 0) compact_.dependents.push_back(place[Index(dependent)]);
    }
    if (graph.lane(op) == ServerLanes::kWorker) computations_ += step_.duration(op);
    lines_[Index(graph.lane(op))].slots.push_back(-1);
  }
  compact_.first_dependent.push_back(static_cast<int32_t>(compact_.dependents.size()));
  download_places_.clear();
  for (const OpIndex op : downloads_) download_places_.push_back(place[Index(op)]);
  service_.assign(scheduled_.size(), 0);
  place_in_order_.assign(scheduled_.size(), -1);
  op_at_place_.assign(downloads_.size(), -1);
}

Span ListSchedule::Makespan(std::span<const int32_t> order, Span limit) {
  Prepare(order);
  const Span makespan = RunAll(limit == kNever ? kNever : limit - after_cut_);
  return makespan == kNever ? kNever : makespan + after_cut_;
}

void ListSchedule::Prepare(std::span<const int32_t> order) {
  for (size_t i = 0; i < order.size(); ++i) {
    const OpIndex op = download_places_[Index(order[i])];
    place_in_order_[Index(op)] = static_cast<int32_t>(i);
    op_at_place_[i] = op;
  }
  pending_ = compact_.pending;
  // A schedule that was given up at its limit left some transfers half served.
  if (step_.graph().most_services() > 1) std::fill(service_.begin(), service_.end(), 0);
  for (Line& line : lines_) line.head = line.size = 0;
  unserved_.resize(Index(servers_));
  for (Unserved& unserved : unserved_) unserved.Reset(order.size());
  running_.assign(Index(lanes_), -1);
  end_.assign(Index(lanes_), kEndOfTime);
  networks_.clear();
  for (size_t direction = 0; idle_network_.has_value() && direction < network_end_.size();
       ++direction)
    networks_.push_back(*idle_network_);
  network_end_ = {kEndOfTime, kEndOfTime};
  completed_.clear();
  computations_left_ = computations_;
  left_ = scheduled_.size();
  ready_ = compact_.roots;
}

Span ListSchedule::RunAll(Span limit) {
  Instant now;
  RunRounds(now);
  while (left_ > 0) {
    Settle(now);
    now = NextEnd();
    const Instant worker_free =
        running_[ServerLanes::kWorker] < 0 ? now : end_[ServerLanes::kWorker];
    if (worker_free - Instant{} > limit - computations_left_) return kNever;
    TakeEnded(now);
    RunRounds(now);
  }
  return now - Instant{} > limit ? kNever : now - Instant{};
}

Instant ListSchedule::NextEnd() const {
  return std::min({*std::min_element(end_.begin(), end_.end()), network_end_[0], network_end_[1]});
}

void ListSchedule::TakeEnded(Instant now) {
  for (size_t direction = 0; direction < networks_.size(); ++direction) {
    if (network_end_[direction] != now) continue;
    ended_.clear();
    networks_[direction].TakeEnded(now, ended_);
    touched_[direction] = true;
    for (const int32_t server : ended_)
      completed_.push_back((direction == 0 ? first_connection_ : first_uplink_) + server);
  }
  for (LaneIndex lane = 0; lane < lanes_; ++lane) {
    if (end_[Index(lane)] == now) completed_.push_back(lane);
  }
}

// Until nothing more ends at this instant; `ready_` holds what the first round begins with.
void ListSchedule::RunRounds(Instant now) {
  do {
    free_ = completed_;
    for (const LaneIndex lane : completed_) Complete(lane);
    if (completed_.size() > 1) std::sort(ready_.begin(), ready_.end());
    completed_.clear();
    for (const OpIndex op : ready_) LineUp(op, now);
    ready_.clear();
    for (const OpIndex op : stopped_) LineUp(op, now);
    stopped_.clear();
    for (const LaneIndex lane : free_) {
      if (running_[Index(lane)] < 0) StartNext(lane, now);
    }
  } while (!completed_.empty());
}

void ListSchedule::Complete(LaneIndex lane) {
  const OpIndex op = std::exchange(running_[Index(lane)], -1);
  end_[Index(lane)] = kEndOfTime;
  if (lane >= first_connection_) {
    int32_t& service = service_[Index(op)];
    if (++service < compact_.work[Index(op)].services) {
      stopped_.push_back(op);
      return;
    }
    service = 0;
  }
  const int32_t* const end = compact_.dependents.data() + compact_.first_dependent[Index(op) + 1];
  for (const int32_t* at = compact_.dependents.data() + compact_.first_dependent[Index(op)];
       at != end; ++at) {
    if (--pending_[Index(*at)] == 0) ready_.push_back(*at);
  }
  --left_;
}

void ListSchedule::LineUp(OpIndex op, Instant now) {
  const LaneIndex lane = compact_.lane[Index(op)];
  const bool idle = running_[Index(lane)] < 0;
  if (IsDownlink(lane)) {
    if (idle) free_.push_back(lane);
    if (service_[Index(op)] == 0) {
      unserved_[Index(lane - first_connection_)].Insert(Index(place_in_order_[Index(op)]));
      return;
    }
  }
  Line& line = lines_[Index(lane)];
  if (idle && line.size == 0 && !IsDownlink(lane)) {
    Start(lane, op, now);
    return;
  }
  size_t at = line.head + line.size++;
  if (at >= line.slots.size()) at -= line.slots.size();
  line.slots[at] = op;
  if (idle) free_.push_back(lane);
}

void ListSchedule::StartNext(LaneIndex lane, Instant now) {
  if (IsDownlink(lane)) {
    const int32_t place = unserved_[Index(lane - first_connection_)].PopFirst();
    if (place >= 0) {
      Start(lane, op_at_place_[Index(place)], now);
      return;
    }
  }
  Line& line = lines_[Index(lane)];
  if (line.size == 0) return;
  const OpIndex op = line.slots[line.head];
  line.head = line.head + 1 == line.slots.size() ? 0 : line.head + 1;
  --line.size;
  Start(lane, op, now);
}

void ListSchedule::Start(LaneIndex lane, OpIndex op, Instant now) {
  running_[Index(lane)] = op;
  if (lane >= first_connection_) {
    const Span work = compact_.work[Index(op)].OfService(service_[Index(op)]);
    if (networks_.empty()) {
      end_[Index(lane)] = now + work;
      return;
    }
    const size_t direction = IsDownlink(lane) ? 0 : 1;
    networks_[direction].Start(lane - (direction == 0 ? first_connection_ : first_uplink_), work);
    touched_[direction] = true;
    return;
  }
  const Span duration = compact_.duration[Index(op)];
  if (lane == ServerLanes::kWorker) computations_left_ = computations_left_ - duration;
  if (duration == Span{}) {
    completed_.push_back(lane);
    return;
  }
  end_[Index(lane)] = now + duration;
}

void ListSchedule::Settle(Instant now) {
  for (size_t direction = 0; direction < networks_.size(); ++direction) {
    if (std::exchange(touched_[direction], false))
      network_end_[direction] = networks_[direction].Settle(now);
  }
}

}  // namespace stepcast
