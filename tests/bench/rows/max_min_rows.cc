// The engine where flows cross two links, against filling all links anew at every change and
// against SimGrid: maxmin.*.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/stop_check.h"
#include "core/engine/plain_run.h"
#include "core/network/path_network.h"
#include "tests/bench/agreement.h"
#include "tests/bench/cpu_clock.h"
#include "tests/bench/engine_run.h"
#include "tests/bench/job.h"
#include "tests/bench/peers/simgrid_peer.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/rows/steady_load.h"

namespace stepcast::bench {

namespace {

struct Size {
  std::string_view model;
  int32_t workers = 0;
  int32_t servers = 0;
  int32_t steps = 0;
};

// A tick that 64 flows share is rounded in every one of a step's transfers, on two links.
constexpr double kMaxMinAgreement = 1e-8;
constexpr Size kSmall{.model = "resnet50", .workers = 64, .servers = 4, .steps = 8};
// A small model, and a single step: filling 16,384 flows' links anew takes tens of microseconds an
// operation.
constexpr Size kLarge{.model = "alexnet", .workers = 1024, .servers = 16, .steps = 1};

RunResult RunOnPaths(const Job& job, const RunOptions& options) {
  const auto workers = static_cast<int32_t>(options.start_offsets.size());
  const JobGraph graph = JobGraphOf(job, workers);
  const PathNetwork network =
      PathNetwork::Star(graph.lanes().CountOf(0), graph.networks.front().worker_capacities);
  absl::StatusOr<RunResult> result =
      PlainRun<PathNetwork>(graph, options, {network, network}, NeverStop).Go();
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

// Both run the whole job, and must end every step at the same tick.
Outcome RunAgainstPaths(const Size& size, int rounds) {
  const Job job = ZooJob(size.model, size.servers);
  RunOptions options = OptionsFor(job, size.workers, size.steps);
  options.keep_step_ends = true;
  std::vector<std::vector<Instant>> ends;
  const auto ours = [&] { return RunEngine(job, options, &ends); };
  const auto theirs = [&] {
    const double begin = ThreadCpuNs();
    const RunResult result = RunOnPaths(job, options);
    const Cost cost{.cpu_ns = ThreadCpuNs() - begin, .operations = result.simulated_operations};
    if (result.step_ends != ends)
      throw std::runtime_error("steps end at other ticks where all links are filled anew");
    return cost;
  };
  return {.rounds = TakeTurns(rounds, ours, theirs, TheirsOverOurs)};
}

Outcome RunAgainstSimGrid(int rounds) {
  const Job job = ZooJob(kSmall.model, kSmall.servers);
  const SimGridPeer peer(job);
  const RunOptions first = OptionsFor(job, kSmall.workers, 1);
  RequireAgreement("SimGrid", EngineStepEnds(job, first), peer.Run(first).step_ends, 1,
                   kMaxMinAgreement);
  const RunOptions ours = OptionsFor(job, kSmall.workers, kSmall.steps);
  const RunOptions theirs = OptionsFor(job, kSmall.workers, 2);
  return {.rounds = TakeTurns(
              rounds, [&] { return RunEngine(job, ours); }, [&] { return peer.Run(theirs).cost; },
              TheirsOverOurs)};
}

}  // namespace

void AddMaxMinRows(Registry& registry) {
  registry.Add({.name = "maxmin.full_refill.w64_m4",
                .sides = "all links filled anew / engine, ResNet-50",
                .goal = AtLeast(5, 10),
                .run = [](int rounds) { return RunAgainstPaths(kSmall, rounds); }});
  registry.Add({.name = "maxmin.full_refill.w1024_m16",
                .sides = "all links filled anew / engine, AlexNet",
                .goal = AtLeast(30, 60),
                .rounds = 3,
                .run = [](int rounds) { return RunAgainstPaths(kLarge, rounds); }});
  registry.Add({.name = "maxmin.simgrid.w64_m4",
                .sides = "SimGrid / engine, ResNet-50",
                .goal = AtLeast(100, 200),
                .run = RunAgainstSimGrid});
}

}  // namespace stepcast::bench
