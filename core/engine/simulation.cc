#include "core/engine/simulation.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/engine/joint_plan.h"
#include "core/engine/joint_run.h"
#include "core/engine/phase_plan.h"
#include "core/engine/phased_run.h"
#include "core/engine/plain_run.h"
#include "core/network/equal_share_link.h"
#include "core/network/first_come_network.h"
#include "core/network/independent_links.h"
#include "core/network/max_min_network.h"
#include "core/network/path_network.h"
#include "core/network/turns_link.h"
#include "core/network/turns_network.h"

namespace stepcast {

namespace {

// True if every worker's own link carries all that the hubs can send together, so that it never
// binds.
bool OwnLinksNeverBind(const NetworkSpec& network, int32_t hubs) {
  return std::all_of(network.worker_capacities.begin(), network.worker_capacities.end(),
                     [&](int64_t capacity) { return capacity / hubs >= LinkLevel::kUnit; });
}

// make(network): one for each of the job's.
template <typename Make>
absl::StatusOr<RunResult> RunPlain(const JobGraph& job, const RunOptions& options, StopCheck stop,
                                   Make make) {
  std::vector<decltype(make(0))> networks;
  networks.reserve(job.networks.size());
  for (int32_t i = 0; i < static_cast<int32_t>(job.networks.size()); ++i)
    networks.push_back(make(i));
  return PlainRun(job, options, std::move(networks), stop).Go();
}

absl::Status CheckSize(const JobGraph& job, bool scales) {
  // The memory of a lane is that of so many operations; with cycles there is one for each of them.
  constexpr int64_t kOperationsPerLane = 8;
  const int64_t workers = job.workers();
  int64_t size = 0;
  double longest_step_ticks = 0;
  for (const std::shared_ptr<const Program>& program : job.programs) {
    size = std::max<int64_t>(size, program->size());
    longest_step_ticks = std::max(longest_step_ticks, program->longest_step_ticks());
  }
  if (scales)
    longest_step_ticks *= static_cast<double>(StepScaling::kMaxScale) / StepScaling::kUnit;
  if (job.joint.cycles.has_value()) size += kOperationsPerLane * job.lanes().count();
  if (workers * size > kMaxWorkerOperations) {
    const std::string operations = std::to_string(size);
    const std::string limit = std::to_string(kMaxWorkerOperations);
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "the run is too large: " + std::to_string(workers) + " workers x " +
                         operations + " operations is over max_worker_operations " + limit,
                     {.reason = "SIMULATION_TOO_LARGE",
                      .metadata = {{"workers", std::to_string(workers)},
                                   {"operations", operations},
                                   {"max_worker_operations", limit}}});
  }
  double joint_ticks = 0;
  for (const Span length : job.joint.lengths) joint_ticks += static_cast<double>(length.ticks);
  // Keeps the virtual clocks' products within an int64.
  if (longest_step_ticks * static_cast<double>(workers) + joint_ticks >=
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

absl::StatusOr<RunResult> Simulate(const JobGraph& job, const RunOptions& options, StopCheck stop) {
  if (absl::Status status = CheckSize(job, options.scaling != nullptr); !status.ok()) return status;
  const int32_t workers = job.workers();
  const auto hubs_of = [&](int32_t network) { return job.lanes().CountOf(network); };
  const auto max_min = [&](int32_t i) {
    return MaxMinNetwork(hubs_of(i), job.networks[Index(i)].CapacitiesOf(workers, hubs_of(i)));
  };
  const bool has_paths = std::any_of(job.networks.begin(), job.networks.end(),
                                     [](const NetworkSpec& n) { return !n.paths.empty(); });
  if (has_paths) {
    return RunPlain(job, options, stop, [&](int32_t i) {
      const NetworkSpec& network = job.networks[Index(i)];
      return PathNetwork(hubs_of(i), network.links, network.paths);
    });
  }
  if (HasJointWorkOnly(job, options)) {
    std::shared_ptr<const PreparedJoint> prepared = job.joint.prepared;
    if (prepared == nullptr) {
      prepared =
          std::make_shared<const PreparedJoint>(PrepareJoint(*job.programs.front(), job.joint));
    }
    if (prepared->plan.has_value()) return RunJoint(job, *prepared, options, stop);
  }
  bool has_one_hub = true;
  bool hubs_alone_bind = true;
  for (int32_t i = 0; Index(i) < job.networks.size(); ++i) {
    has_one_hub = has_one_hub && hubs_of(i) == 1;
    hubs_alone_bind = hubs_alone_bind && OwnLinksNeverBind(job.networks[Index(i)], hubs_of(i));
  }
  const NetworkSpec::Sharing sharing =
      job.networks.empty() ? NetworkSpec::Sharing::kEqual : job.networks.front().sharing;
  const bool forwards =
      sharing == NetworkSpec::Sharing::kTurns && !(has_one_hub && hubs_alone_bind);
  if (forwards) {
    return RunPlain(job, options, stop, [&](int32_t i) {
      const NetworkSpec& network = job.networks[Index(i)];
      return TurnsNetwork(
          {.hubs = hubs_of(i), .turn = network.turn, .from_workers = network.from_workers},
          network.CapacitiesOf(workers, hubs_of(i)));
    });
  }
  const bool in_phases = hubs_alone_bind || sharing == NetworkSpec::Sharing::kEqual;
  if (in_phases && options.fastest_path != EnginePath::kPlain && options.scaling == nullptr &&
      job.StepsStandAlone()) {
    const absl::StatusOr<std::optional<PhasePlan>> plan =
        PhasePlan::Make(*job.programs.front(), options.fastest_path == EnginePath::kMemoised, stop);
    if (!plan.ok()) return plan.status();
    if (plan->has_value()) return RunInPhases(job, **plan, options, !hubs_alone_bind, stop);
  }
  if (sharing == NetworkSpec::Sharing::kFirstCome) {
    if (has_one_hub && hubs_alone_bind) {
      return RunPlain(job, options, stop, [&](int32_t) {
        return FirstComeNetwork(1, Index(workers), EqualShareLink(Index(workers)));
      });
    }
    return RunPlain(job, options, stop, [&](int32_t i) {
      return FirstComeNetwork(hubs_of(i), Index(workers), max_min(i));
    });
  }
  if (!hubs_alone_bind) return RunPlain(job, options, stop, max_min);
  if (sharing == NetworkSpec::Sharing::kTurns) {
    return RunPlain(job, options, stop, [&](int32_t i) {
      return TurnsLink(Index(workers), job.networks[Index(i)].turn);
    });
  }
  if (has_one_hub) {
    return RunPlain(job, options, stop, [&](int32_t) { return EqualShareLink(Index(workers)); });
  }
  return RunPlain(job, options, stop,
                  [&](int32_t i) { return IndependentLinks(hubs_of(i), Index(workers)); });
}

}  // namespace stepcast
