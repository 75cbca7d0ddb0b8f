#include "core/engine/simulation.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <string>

#include "core/base/bandwidth.h"
#include "core/base/error.h"
#include "core/engine/phase_plan.h"
#include "core/engine/phased_run.h"
#include "core/engine/plain_run.h"
#include "core/network/equal_share_link.h"
#include "core/network/first_come_network.h"
#include "core/network/independent_links.h"
#include "core/network/max_min_network.h"
#include "core/network/turns_link.h"

namespace stepcast {

namespace {

// What each worker's own link carries, in units of 1/kUnit of a server's link.
std::vector<int64_t> WorkerCapacities(const RunOptions& options) {
  std::vector<int64_t> capacities;
  const Bandwidth server(options.bandwidth_bytes_per_second);
  for (const WorkerGroup& group : options.worker_groups) {
    const Bandwidth own(
        group.bandwidth_bytes_per_second.value_or(options.bandwidth_bytes_per_second));
    capacities.insert(capacities.end(), static_cast<size_t>(group.count),
                      own.RatioTo(server, MaxMinNetwork::kUnit));
  }
  capacities.resize(options.start_offsets.size(), MaxMinNetwork::kUnit);
  return capacities;
}

// Whether every worker's own link carries all that its servers can send together, so that it never
// binds.
bool WorkerLinksNeverBind(int32_t servers, const std::vector<int64_t>& worker_capacities) {
  return std::all_of(worker_capacities.begin(), worker_capacities.end(),
                     [&](int64_t capacity) { return capacity / servers >= MaxMinNetwork::kUnit; });
}

template <typename Network>
absl::StatusOr<RunResult> RunPlain(const StepGraph& graph, const RunOptions& options,
                                   const Network& network, StopCheck stop) {
  return PlainRun<Network>(graph, options, network, network, stop).Go();
}

absl::Status CheckSize(const StepGraph& graph, int64_t workers) {
  if (workers * graph.size() > kMaxWorkerOperations) {
    const std::string operations = std::to_string(graph.size());
    const std::string limit = std::to_string(kMaxWorkerOperations);
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "the run is too large: " + std::to_string(workers) + " workers x " +
                         operations + " operations is over max_worker_operations " + limit,
                     {.reason = "SIMULATION_TOO_LARGE",
                      .metadata = {{"workers", std::to_string(workers)},
                                   {"operations", operations},
                                   {"max_worker_operations", limit}}});
  }
  // Keeps the virtual clocks' products within an int64.
  if (graph.longest_step_ticks() * static_cast<double>(workers) >=
      static_cast<double>(kEndOfTime.ticks))
    return SimulatedTimeExhausted();
  return absl::OkStatus();
}

}  // namespace

const char* NameOf(EnginePath path) {
  constexpr const char* kNames[] = {"plain", "worker_loop", "memoised"};
  return kNames[static_cast<size_t>(path)];
}

absl::Status SimulatedTimeExhausted() {
  return MakeError(absl::StatusCode::kOutOfRange,
                   "the run is longer than the simulated time there is (about 21 days); ask for "
                   "fewer steps, fewer workers or more bandwidth",
                   {.reason = "SIMULATED_TIME_EXHAUSTED"});
}

absl::StatusOr<RunResult> Simulate(const StepGraph& graph, const RunOptions& options,
                                   StopCheck stop) {
  const auto workers = options.start_offsets.size();
  if (absl::Status status = CheckSize(graph, static_cast<int64_t>(workers)); !status.ok())
    return status;
  const int32_t servers = graph.lanes().servers;
  const std::vector<int64_t> capacities = WorkerCapacities(options);
  const bool servers_alone_bind = WorkerLinksNeverBind(servers, capacities);
  if (options.link_sharing == LinkSharing::kFirstCome) {
    if (servers == 1 && servers_alone_bind)
      return RunPlain(graph, options, FirstComeNetwork(1, workers, EqualShareLink(workers)), stop);
    return RunPlain(graph, options,
                    FirstComeNetwork(servers, workers, MaxMinNetwork(servers, capacities)), stop);
  }
  if (options.link_sharing == LinkSharing::kTurns) {
    assert(servers == 1 && servers_alone_bind);
    return RunPlain(graph, options, TurnsLink(workers, options.turn), stop);
  }
  if (!servers_alone_bind)
    return RunPlain(graph, options, MaxMinNetwork(servers, capacities), stop);
  if (options.fastest_path != EnginePath::kPlain && options.order == TransferOrder::kGraph) {
    const std::optional<PhasePlan> plan =
        PhasePlan::Make(graph, options.fastest_path == EnginePath::kMemoised);
    if (plan.has_value()) return RunInPhases(graph, *plan, options, stop);
  }
  if (servers == 1) return RunPlain(graph, options, EqualShareLink(workers), stop);
  return RunPlain(graph, options, IndependentLinks(servers, workers), stop);
}

}  // namespace stepcast
