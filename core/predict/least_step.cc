#include "core/predict/least_step.h"

#include <cstddef>
#include <utility>

#include "core/engine/simulation.h"

namespace stepcast {

namespace {

ScheduleBounds BoundsOfGraph(const StepGraph& graph) {
  const LaneMap& lanes = graph.lanes();
  std::vector<Span> busy(static_cast<size_t>(lanes.count()));
  for (OpIndex op = 0; op < graph.size(); ++op) {
    const LaneIndex lane = graph.lane(op);
    if (!graph.IsTransfer(op)) {
      busy[static_cast<size_t>(lane)] += graph.duration(0, op);
      continue;
    }
    const LaneIndex link = lanes.KindOf(lane) == Resource::kDownlink ? lanes.Downlink(0) : lanes.Uplink(0);
    busy[static_cast<size_t>(link)] += graph.work(op).Total();
  }
  return BoundsOf(busy);
}

}  // namespace

LeastStep::LeastStep(StepGraph graph, double bandwidth_bytes_per_second)
    : graph_(std::move(graph)), bandwidth_bytes_per_second_(bandwidth_bytes_per_second), bounds_(BoundsOfGraph(graph_)) {}

absl::StatusOr<LeastStep> LeastStep::Build(const Profile& profile, const Scenario& scenario) {
  Scenario alone = scenario;
  alone.workers = 1;
  alone.start_offsets_ns.clear();
  alone.worker_groups.clear();
  StepGraph graph = StepGraph::Build(profile, alone, StepGraph::Times::kLeast);
  if (graph.longest_step_ticks() >= static_cast<double>(kEndOfTime.ticks)) return SimulatedTimeExhausted();
  return LeastStep(std::move(graph), scenario.bandwidth_bytes_per_second);
}

absl::StatusOr<Span> LeastStep::Makespan(const std::vector<int32_t>& ranks, StopCheck stop) const {
  RunOptions options;
  options.start_offsets = {Span{}};
  options.bandwidth_bytes_per_second = bandwidth_bytes_per_second_;
  options.order = ranks.empty() ? TransferOrder::kGraph : TransferOrder::kExplicit;
  options.ranks = ranks;
  options.keep_step_ends = true;
  const absl::StatusOr<RunResult> run = Simulate(graph_, options, stop);
  if (!run.ok()) return run.status();
  return run->step_ends.front().front() - Instant{};
}

}  // namespace stepcast
