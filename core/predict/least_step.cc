#include "core/predict/least_step.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/bandwidth.h"
#include "core/base/index.h"
#include "core/engine/compute_speed.h"
#include "core/engine/simulation.h"
#include "core/network/max_min_network.h"

namespace stepcast {

namespace {

using Wide = unsigned __int128;

}  // namespace

LeastStep::LeastStep(StepGraph graph, const Scenario& alone)
    : graph_(std::move(graph)),
      bandwidth_bytes_per_second_(alone.bandwidth_bytes_per_second),
      worker_group_(alone.worker_groups) {}

absl::StatusOr<LeastStep> LeastStep::Build(const Profile& profile, const Scenario& scenario,
                                           StopCheck stop) {
  Scenario alone = scenario;
  alone.workers = 1;
  alone.start_offsets_ns.clear();
  if (!alone.worker_groups.empty()) {
    alone.worker_groups.resize(1);
    alone.worker_groups.front().count = 1;
  }
  absl::StatusOr<StepGraph> graph =
      StepGraph::Build(profile, alone, StepGraph::Times::kLeast, stop);
  if (!graph.ok()) return graph.status();
  LeastStep step(*std::move(graph), alone);
  if (step.TicksOfAll() >= static_cast<double>(kEndOfTime.ticks)) return SimulatedTimeExhausted();
  step.bounds_ = step.BoundsOfGraph();
  return step;
}

double LeastStep::TicksOfAll() const {
  const double link = std::max(
      1.0, static_cast<double>(MaxMinNetwork::kUnit) / static_cast<double>(worker_link_capacity()));
  double ticks = 0;
  for (OpIndex op = 0; op < graph_.size(); ++op) {
    ticks += graph_.IsTransfer(op) ? static_cast<double>(graph_.work(op).Total().ticks) * link
                                   : static_cast<double>(duration(op).ticks);
  }
  return ticks;
}

Span LeastStep::duration(OpIndex op) const {
  const Span recorded = graph_.duration(0, op);
  const bool slowed = !worker_group_.empty() && graph_.lane(op) == LaneMap::kWorker;
  return slowed ? AtSpeed(recorded, worker_group_.front().compute_speed_factor.value_or(1))
                : recorded;
}

int64_t LeastStep::worker_link_capacity() const {
  if (worker_group_.empty() || !worker_group_.front().bandwidth_bytes_per_second.has_value())
    return MaxMinNetwork::kUnit;
  return Bandwidth(*worker_group_.front().bandwidth_bytes_per_second)
      .RatioTo(Bandwidth(bandwidth_bytes_per_second_), MaxMinNetwork::kUnit);
}

bool LeastStep::worker_link_binds() const {
  return worker_link_capacity() / graph_.lanes().servers < MaxMinNetwork::kUnit;
}

Span LeastStep::OnWorkerLink(Span time) const {
  return {
      static_cast<int64_t>(static_cast<Wide>(time.ticks) * static_cast<Wide>(MaxMinNetwork::kUnit) /
                           static_cast<Wide>(worker_link_capacity()))};
}

ScheduleBounds LeastStep::BoundsOfGraph() const {
  const LaneMap& lanes = graph_.lanes();
  std::vector<Span> busy(Index(lanes.count()));
  Span own_downlink;
  Span own_uplink;
  for (OpIndex op = 0; op < graph_.size(); ++op) {
    const LaneIndex lane = graph_.lane(op);
    const Span time = graph_.IsTransfer(op) ? graph_.work(op).Total() : duration(op);
    busy[Index(lane)] += time;
    if (lanes.KindOf(lane) == Resource::kDownlink) own_downlink += time;
    if (lanes.KindOf(lane) == Resource::kUplink) own_uplink += time;
  }
  ScheduleBounds bounds = BoundsOf(busy);
  bounds.lower = std::max({bounds.lower, OnWorkerLink(own_downlink), OnWorkerLink(own_uplink)});
  // A worker's own link that is slower than a server's is what one transfer after the other takes.
  if (worker_link_capacity() < MaxMinNetwork::kUnit) {
    bounds.upper = bounds.upper - own_downlink - own_uplink + OnWorkerLink(own_downlink) +
                   OnWorkerLink(own_uplink);
  }
  return bounds;
}

absl::StatusOr<Span> LeastStep::Makespan(const std::vector<int32_t>& ranks, StopCheck stop) const {
  RunOptions options;
  options.start_offsets = {Span{}};
  options.worker_groups = worker_group_;
  options.bandwidth_bytes_per_second = bandwidth_bytes_per_second_;
  options.order = ranks.empty() ? TransferOrder::kGraph : TransferOrder::kExplicit;
  options.ranks = ranks;
  options.keep_step_ends = true;
  const absl::StatusOr<RunResult> run = Simulate(graph_, options, stop);
  if (!run.ok()) return run.status();
  return run->step_ends.front().front() - Instant{};
}

}  // namespace stepcast
