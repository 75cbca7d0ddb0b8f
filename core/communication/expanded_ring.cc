#include "core/communication/expanded_ring.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/bandwidth.h"
#include "core/base/error.h"
#include "core/communication/collective_time.h"
#include "core/network/path_network.h"

namespace stepcast {

namespace {

// Networks of the job.
constexpr int32_t kChunks = 0;
constexpr int32_t kLatencies = 1;
// A link that is faster, of the slowest one's capacities, is taken for one that is so fast: the
// slowest one rules a ring, and a network's clocks have room for no more.
constexpr int64_t kFastest = 1024;

int32_t RoundsOf(Collective kind, int32_t workers) {
  if (!HasRounds(kind, workers)) return 0;
  return (kind == Collective::kAllReduce ? 2 : 1) * (workers - 1);
}
int32_t AddingRoundsOf(Collective kind, int32_t workers) {
  return kind == Collective::kAllGather ? 0 : workers - 1;
}

// The links between a worker and the next one.
class RingLinks {
 public:
  explicit RingLinks(const Scenario& scenario)
      : job_(scenario.all_reduce()), workers_(scenario.workers) {
    for (const WorkerGroup& group : scenario.worker_groups) {
      own_.insert(own_.end(), Index(group.count),
                  group.bandwidth_bytes_per_second.value_or(scenario.bandwidth_bytes_per_second));
    }
    own_.resize(Index(workers_), scenario.bandwidth_bytes_per_second);
  }

  int32_t Next(int32_t worker) const { return worker + 1 == workers_ ? 0 : worker + 1; }
  bool StaysInside(int32_t worker) const {
    return worker / job_.workers_per_node == Next(worker) / job_.workers_per_node;
  }
  bool LeavesRack(int32_t worker) const { return RackOf(worker) != RackOf(Next(worker)); }
  int32_t RackOf(int32_t worker) const {
    return job_.workers_per_rack == 0 ? 0 : worker / job_.workers_per_rack;
  }
  int32_t racks() const { return RackOf(workers_ - 1) + 1; }

  double BytesPerSecond(int32_t worker) const {
    if (StaysInside(worker)) return job_.intra_node_bandwidth_bytes_per_second;
    return std::min(own_[Index(worker)], own_[Index(Next(worker))]);
  }
  double LatencySeconds(int32_t worker) const {
    return StaysInside(worker) ? job_.intra_node_latency_seconds : job_.latency_seconds;
  }
  // The least bandwidth of all links that a chunk crosses.
  double SlowestBytesPerSecond() const {
    double slowest = std::numeric_limits<double>::infinity();
    for (int32_t worker = 0; worker < workers_; ++worker) {
      slowest = std::min(slowest, BytesPerSecond(worker));
      if (LeavesRack(worker)) slowest = std::min(slowest, job_.rack_bandwidth_bytes_per_second);
    }
    return slowest;
  }

 private:
  const AllReduce& job_;
  const int32_t workers_;
  std::vector<double> own_;
};

class ExpandedWriter {
 public:
  ExpandedWriter(const Profile& profile, const StepPlan& plan, const Scenario& scenario,
                 StopCheck stop)
      : profile_(profile),
        plan_(plan),
        job_(scenario.all_reduce()),
        workers_(scenario.workers),
        stop_(stop),
        pace_(stop) {
    const RingLinks links(scenario);
    slowest_ = links.SlowestBytesPerSecond();
    // The last worker's chunk goes to the first one, which is on the same node if all are.
    latency_ = links.LatencySeconds(workers_ - 1);
    const bool has_inside = workers_ > 1 && !links.StaysInside(workers_ - 1) &&
                            job_.workers_per_node > 1 &&
                            job_.intra_node_latency_seconds != job_.latency_seconds;
    inside_latency_ = has_inside ? job_.intra_node_latency_seconds : latency_;
    for (const PlannedOperation& operation : plan)
      streams_ = std::max(streams_, operation.stream + 1);
  }

  absl::StatusOr<ExpandedProgram> Write() && {
    Place();
    ProgramDraft draft = Draft(latency_);
    if (!pace_.status().ok()) return pace_.status();
    std::shared_ptr<const Program> inside;
    if (inside_latency_ != latency_) {
      ProgramDraft other = draft;
      other.work = WorkWith(inside_latency_);
      absl::StatusOr<Program> made = Program::Make(std::move(other), stop_);
      if (!made.ok()) return made.status();
      inside = std::make_shared<const Program>(*std::move(made));
    }
    absl::StatusOr<Program> program = Program::Make(std::move(draft), stop_);
    if (!program.ok()) return program.status();
    return ExpandedProgram{
        .program = *std::move(program),
        .ring = {.inside = std::move(inside), .peer_edges = std::move(peer_edges_)},
        .begins = std::move(first_),
        .ends = std::move(last_)};
  }

 private:
  bool TravelsAfter(const PlannedOperation& operation, int32_t round) const {
    const bool adds = round < AddingRoundsOf(operation.kind, workers_);
    return latency_ > 0 || inside_latency_ > 0 || (adds && job_.reduction_seconds_per_byte > 0);
  }

  // The first and the last operation of each of the plan's.
  void Place() {
    OpIndex next = 0;
    for (const PlannedOperation& operation : plan_) {
      first_.push_back(next++);
      if (operation.kind != Collective::kUnspecified) {
        const int32_t rounds = RoundsOf(operation.kind, workers_);
        for (int32_t round = 0; round < rounds; ++round)
          next += TravelsAfter(operation, round) ? 2 : 1;
        ++next;
      }
      last_.push_back(next - 1);
    }
  }

  ProgramDraft Draft(double latency) {
    ProgramDraft draft;
    std::vector<LaneSpec> lanes;
    lanes.reserve(Index(streams_) + 4);
    for (int32_t i = 0; i < streams_; ++i)
      lanes.push_back({.role = LaneRole::kCompute, .index = i});
    lanes.push_back({.role = LaneRole::kJoint});
    lanes.push_back({.role = LaneRole::kLink, .network = kChunks});
    lanes.push_back({.role = LaneRole::kLink, .network = kLatencies});
    draft.lanes = Lanes(std::move(lanes));
    for (size_t i = 0; i < plan_.size() && pace_.GoesOn(1); ++i) AppendOperation(i, draft);
    draft.work = WorkWith(latency);
    draft.step_count = static_cast<int32_t>(profile_.steps().size());
    draft.durations.reserve(Index(draft.step_count) * draft.lane.size());
    for (size_t at = 0; at < profile_.steps().size(); ++at)
      for (size_t i = 0; i < plan_.size(); ++i) AppendDurations(i, at, draft);
    return draft;
  }

  void AppendOperation(size_t index, ProgramDraft& draft) {
    const PlannedOperation& operation = plan_[index];
    const bool computes = operation.kind == Collective::kUnspecified;
    const auto append = [&](LaneIndex lane, int64_t bytes) {
      draft.lane.push_back(lane);
      draft.source.push_back(operation.source);
      draft.size_bytes.push_back(bytes);
      return static_cast<OpIndex>(draft.lane.size()) - 1;
    };
    const auto wait = [&](OpIndex after, OpIndex before) {
      draft.dependencies.push_back({.before = before, .after = after});
    };
    const OpIndex first = append(computes ? operation.stream : streams_, operation.bytes);
    for (const int32_t before : operation.waiting_for) wait(first, last_[Index(before)]);
    if (computes) return;
    const int32_t rounds = RoundsOf(operation.kind, workers_);
    const int64_t chunk = operation.bytes / workers_ + (operation.bytes % workers_ != 0 ? 1 : 0);
    OpIndex came = first;    // what a worker sends in the next round, here
    OpIndex came_from = -1;  // or there: the chunk of the worker before, where nothing follows it
    OpIndex sent = first;
    for (int32_t round = 0; round < rounds && pace_.GoesOn(2); ++round) {
      sent = append(streams_ + 1, chunk);
      wait(sent, came);
      if (came_from >= 0)
        peer_edges_.push_back({.before = came_from, .after = sent, .worker_offset = -1});
      came_from = sent;
      came = first;
      if (!TravelsAfter(operation, round)) continue;
      const OpIndex travelled = append(streams_ + 2, chunk);
      wait(travelled, first);
      peer_edges_.push_back({.before = sent, .after = travelled, .worker_offset = -1});
      came = travelled;
      came_from = -1;
    }
    const OpIndex last = append(streams_, 0);
    wait(last, sent);
    if (came != sent && came != first) wait(last, came);
    if (came_from >= 0)
      peer_edges_.push_back({.before = came_from, .after = last, .worker_offset = -1});
  }

  // A computation is one operation, a collective several that take no time by themselves.
  void AppendDurations(size_t index, size_t at, ProgramDraft& draft) {
    const PlannedOperation& operation = plan_[index];
    const bool computes = operation.kind == Collective::kUnspecified;
    const Span each = computes ? DurationOf(operation, profile_.steps()[at], at) : Span{};
    for (OpIndex op = first_[index]; op <= last_[index] && pace_.GoesOn(1); ++op)
      draft.durations.push_back(each);
  }

  // Work of every operation, by index.
  std::vector<TransferWork> WorkWith(double latency) const {
    std::vector<TransferWork> work;
    work.reserve(Index(last_.empty() ? 0 : last_.back() + 1));
    for (const PlannedOperation& operation : plan_) {
      work.emplace_back();
      if (operation.kind == Collective::kUnspecified) continue;
      const double chunk = static_cast<double>(operation.bytes) / workers_;
      const int32_t rounds = RoundsOf(operation.kind, workers_);
      for (int32_t round = 0; round < rounds; ++round) {
        work.push_back({.first = AtLeastATick(chunk / slowest_)});
        if (!TravelsAfter(operation, round)) continue;
        const double added = round < AddingRoundsOf(operation.kind, workers_)
                                 ? chunk * job_.reduction_seconds_per_byte
                                 : 0;
        work.push_back({.first = AtLeastATick(latency + added)});
      }
      work.emplace_back();
    }
    return work;
  }
  static Span AtLeastATick(double seconds) { return std::max(SpanOf(seconds), Span{1}); }

  const Profile& profile_;
  const StepPlan& plan_;
  const AllReduce& job_;
  const int32_t workers_;
  const StopCheck stop_;
  PacedStopCheck pace_;
  double slowest_ = 0;
  double latency_ = 0;         // of what the worker before sends
  double inside_latency_ = 0;  // of workers inside a node, where others are not
  int32_t streams_ = 1;
  std::vector<OpIndex> first_;
  std::vector<OpIndex> last_;
  std::vector<PeerEdge> peer_edges_;
};

}  // namespace

bool HasRounds(Collective kind, int32_t workers) {
  return workers > 1 && kind != Collective::kUnspecified && kind != Collective::kBroadcast;
}

absl::Status CheckExpanded(const Profile& profile, const StepPlan& plan, const Scenario& scenario,
                           const AllReduceLimits& limits) {
  int64_t operations = 0;
  for (const PlannedOperation& operation : plan) {
    const int64_t rounds = RoundsOf(operation.kind, scenario.workers);
    operations += operation.kind == Collective::kUnspecified ? 1 : 2 + 2 * rounds;
  }
  const auto steps = static_cast<int64_t>(profile.steps().size());
  std::string over;
  if (operations > limits.max_expanded_operations) {
    over = absl::StrCat(" operations, which is above the limit max_expanded_operations = ",
                        limits.max_expanded_operations);
  } else if (operations * steps > limits.max_expanded_times) {
    over = absl::StrCat(" operations, and in ", steps,
                        " recorded steps more times than the limit max_expanded_times = ",
                        limits.max_expanded_times);
  }
  if (over.empty()) return absl::OkStatus();
  return FaultsError("SCENARIO_INVALID",
                     {{.field = "all_reduce.fidelity",
                       .description = absl::StrCat("EXPANDED, a step of each of ", scenario.workers,
                                                   " workers has up to ", operations, over)}});
}

absl::StatusOr<ExpandedProgram> ExpandedProgramOf(const Profile& profile, const StepPlan& plan,
                                                  const Scenario& scenario, StopCheck stop) {
  return ExpandedWriter(profile, plan, scenario, stop).Write();
}

void ConnectRing(const Scenario& scenario, const ExpandedRing& ring, JobGraph& job) {
  const RingLinks links(scenario);
  const Bandwidth slowest(links.SlowestBytesPerSecond());
  const auto capacity = [&](double bytes_per_second) {
    return std::min(Bandwidth(bytes_per_second).RatioTo(slowest, LinkLevel::kUnit),
                    kFastest * LinkLevel::kUnit);
  };
  NetworkSpec chunks;
  NetworkSpec latencies;
  for (int32_t worker = 0; worker < scenario.workers; ++worker) {
    chunks.links.push_back(
        {.capacity = capacity(links.BytesPerSecond(worker)), .is_shared = false});
    latencies.links.push_back({.is_shared = false});
    FlowPath path{.links = {worker}, .count = 1};
    latencies.paths.push_back(path);
    if (links.LeavesRack(worker)) {
      // Racks each have a link to the spine and one from it.
      path.links[1] = scenario.workers + 2 * links.RackOf(worker);
      path.links[2] = scenario.workers + 2 * links.RackOf(links.Next(worker)) + 1;
      path.count = 3;
    }
    chunks.paths.push_back(path);
  }
  const double rack = scenario.all_reduce().rack_bandwidth_bytes_per_second;
  for (int32_t i = 0; i < 2 * links.racks() && rack > 0; ++i)
    chunks.links.push_back({.capacity = capacity(rack), .is_shared = true});
  job.networks = {std::move(chunks), std::move(latencies)};
  job.peer_edges = ring.peer_edges;
  if (ring.inside == nullptr) return;
  job.programs.push_back(ring.inside);
  for (int32_t worker = 0; worker < scenario.workers; ++worker) {
    if (links.StaysInside(worker)) job.program_of_worker[Index(links.Next(worker))] = 1;
  }
}

bool HaveSameExpansion(const Scenario& a, const Scenario& b) {
  return a.workers == b.workers && a.bandwidth_bytes_per_second == b.bandwidth_bytes_per_second &&
         a.worker_groups == b.worker_groups && a.all_reduce() == b.all_reduce();
}

}  // namespace stepcast
