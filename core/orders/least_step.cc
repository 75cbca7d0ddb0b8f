#include "core/orders/least_step.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/engine/simulation.h"
#include "core/network/max_min_network.h"
#include "core/orders/outstanding_downloads.h"

namespace stepcast {

namespace {

double Ratio(Span part, Span whole) {
  return static_cast<double>(part.ticks) / static_cast<double>(whole.ticks);
}

}  // namespace

double ScheduleBounds::Efficiency(Span makespan) const {
  return upper == lower ? 1 : Ratio(upper - makespan, upper - lower);
}

double ScheduleBounds::SpeedupBound() const {
  return lower == Span{} ? 0 : Ratio(upper - lower, lower);
}

ScheduleBounds BoundsOf(std::span<const Span> time_by_resource) {
  ScheduleBounds bounds;
  for (const Span time : time_by_resource) {
    bounds.upper += time;
    bounds.lower = std::max(bounds.lower, time);
  }
  return bounds;
}

namespace {

// Sums over a group and all that depend on it.
class Behind {
 public:
  explicit Behind(const DependencyGroups& groups)
      : groups_(groups), visited_(Index(groups.size()), -1) {}

  Span Computation(int32_t group) {
    Span sum;
    to_visit_.assign(1, group);
    visited_[Index(group)] = group;
    while (!to_visit_.empty()) {
      const int32_t at = to_visit_.back();
      to_visit_.pop_back();
      sum += groups_.groups()[Index(at)].computation;
      for (const int32_t dependent : groups_.dependents(at)) {
        if (std::exchange(visited_[Index(dependent)], group) != group)
          to_visit_.push_back(dependent);
      }
      ++work_;
    }
    return sum;
  }
  int64_t work() const { return work_; }

 private:
  const DependencyGroups& groups_;
  std::vector<int32_t> visited_;  // by group: for which it was visited last
  std::vector<int32_t> to_visit_;
  int64_t work_ = 0;
};

}  // namespace

absl::StatusOr<Span> LeastMakespan(const TransferGraph& graph, StopCheck stop) {
  const absl::StatusOr<DependencyGroups> groups = DependencyGroups::Build(graph, stop);
  if (!groups.ok()) return groups.status();
  std::vector<Span> times;
  Span all;
  for (const int32_t op : graph.downloads()) {
    times.push_back(graph.operation(op).time);
    all += times.back();
  }
  const absl::StatusOr<OutstandingDownloads> outstanding =
      OutstandingDownloads::Create(*groups, std::move(times), stop);
  if (!outstanding.ok()) return outstanding.status();

  Span bound = all;
  if (groups->size() > kMaxGroupsToBound) return bound;
  Behind behind(*groups);
  int64_t checked = 0;
  Span least_behind_a_download = kNever;
  for (int32_t group = 0; group < groups->size(); ++group) {
    bound = std::max(bound, outstanding->load(group) + behind.Computation(group));
    if (behind.work() - checked < kStopCheckInterval) continue;
    checked = behind.work();
    if (absl::Status status = stop(); !status.ok()) return status;
  }
  // One of the downloads is the last to arrive.
  for (const int32_t group : groups->download_groups()) {
    least_behind_a_download = std::min(least_behind_a_download, behind.Computation(group));
  }
  if (least_behind_a_download != kNever) bound = std::max(bound, all + least_behind_a_download);
  return bound;
}

namespace {

using Wide = unsigned __int128;

}  // namespace

LeastStep::LeastStep(Program graph, const Scenario& alone)
    : program_(std::make_shared<const Program>(std::move(graph))),
      job_(JobOf(program_, std::make_shared<const Ranking>(), alone)) {}

absl::StatusOr<LeastStep> LeastStep::Make(const Profile& profile, const Scenario& scenario,
                                          ProgramTimes times, StopCheck stop) {
  Scenario alone = scenario;
  alone.workers = 1;
  alone.start_offsets_ns.clear();
  if (!alone.worker_groups.empty()) {
    alone.worker_groups.resize(1);
    alone.worker_groups.front().count = 1;
  }
  absl::StatusOr<Program> graph = BuildProgram(profile, alone, times, stop);
  if (!graph.ok()) return graph.status();
  LeastStep step(*std::move(graph), alone);
  for (int32_t each = 0; each < step.graph().step_count(); ++each) {
    if (absl::Status status = stop(); !status.ok()) return status;
    if (step.TicksOfAll(each) >= static_cast<double>(kEndOfTime.ticks))
      return SimulatedTimeExhausted();
  }
  return step;
}

absl::StatusOr<LeastStep> LeastStep::Build(const Profile& profile, const Scenario& scenario,
                                           StopCheck stop) {
  absl::StatusOr<LeastStep> step = Make(profile, scenario, ProgramTimes::kLeast, stop);
  if (!step.ok()) return step;
  step->bounds_ = step->BoundsOfGraph(0);
  if (absl::Status status = stop(); !status.ok()) return status;
  return step;
}

absl::StatusOr<std::vector<ScheduleBounds>> LeastStep::BoundsOfSteps(const Profile& profile,
                                                                     const Scenario& scenario,
                                                                     StopCheck stop) {
  const absl::StatusOr<LeastStep> steps = Make(profile, scenario, ProgramTimes::kRecorded, stop);
  if (!steps.ok()) return steps.status();
  std::vector<ScheduleBounds> bounds;
  for (int32_t step = 0; step < steps->graph().step_count(); ++step) {
    if (absl::Status status = stop(); !status.ok()) return status;
    bounds.push_back(steps->BoundsOfGraph(step));
  }
  return bounds;
}

double LeastStep::TicksOfAll(int32_t step) const {
  const double link = std::max(
      1.0, static_cast<double>(MaxMinNetwork::kUnit) / static_cast<double>(worker_link_capacity()));
  double ticks = 0;
  for (OpIndex op = 0; op < program_->size(); ++op) {
    ticks += program_->IsTransfer(op) ? static_cast<double>(program_->work(op).Total().ticks) * link
                                      : static_cast<double>(DurationIn(step, op).ticks);
  }
  return ticks;
}

Span LeastStep::duration(OpIndex op) const { return DurationIn(0, op); }

Span LeastStep::DurationIn(int32_t step, OpIndex op) const {
  const Span recorded = program_->duration(step, op);
  return program_->lanes().IsCompute(program_->lane(op)) ? AtSpeed(recorded, job_.compute_speed(0))
                                                         : recorded;
}

int64_t LeastStep::worker_link_capacity() const {
  return job_.networks.front().worker_capacities.front();
}

bool LeastStep::worker_link_binds() const {
  return worker_link_capacity() / ServerLanes::Of(*program_).servers < MaxMinNetwork::kUnit;
}

Span LeastStep::OnWorkerLink(Span time) const {
  return {
      static_cast<int64_t>(static_cast<Wide>(time.ticks) * static_cast<Wide>(MaxMinNetwork::kUnit) /
                           static_cast<Wide>(worker_link_capacity()))};
}

ScheduleBounds LeastStep::BoundsOfGraph(int32_t step) const {
  std::vector<Span> busy(Index(program_->lanes().count()));
  Span own_downlink;
  Span own_uplink;
  for (OpIndex op = 0; op < program_->size(); ++op) {
    const LaneIndex lane = program_->lane(op);
    const Span time = program_->IsTransfer(op) ? program_->work(op).Total() : DurationIn(step, op);
    busy[Index(lane)] += time;
    if (ServerLanes::ResourceOf(*program_, op) == Resource::kDownlink) own_downlink += time;
    if (ServerLanes::ResourceOf(*program_, op) == Resource::kUplink) own_uplink += time;
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
  JobGraph job = job_;
  if (!ranks.empty()) {
    job.rankings = {
        std::make_shared<const Ranking>(Ranking{.rule = Ranking::Rule::kFixed, .ranks = ranks})};
  }
  const RunOptions options{.start_offsets = {Span{}}, .keep_step_ends = true};
  const absl::StatusOr<RunResult> run = Simulate(job, options, stop);
  if (!run.ok()) return run.status();
  return run->step_ends.front().front() - Instant{};
}

}  // namespace stepcast
