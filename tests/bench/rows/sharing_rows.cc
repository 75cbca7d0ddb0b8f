// Links that are shared in other ways than equally, or that bind at both ends, over those that are
// shared equally: turns.w8, first_come.w8, servers.w8_m4_binding.
#include <cstdint>

#include "core/base/bandwidth.h"
#include "core/engine/job_graph.h"
#include "core/model/scenario.h"
#include "core/network/link_level.h"
#include "tests/bench/engine_run.h"
#include "tests/bench/job.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/rows/steady_load.h"

namespace stepcast::bench {

namespace {

constexpr int32_t kWorkers = 8;
constexpr int32_t kServers = 4;
// Both run as many: the slow side tenths of a second.
constexpr int64_t kOperations = 2'000'000;

Outcome CompareJobs(const Job& job, const JobGraph& ours, const JobGraph& theirs, int rounds) {
  const RunOptions options = OptionsForOperations(job, kWorkers, kOperations);
  return {.rounds = TakeTurns(
              rounds, [&] { return RunEngine(ours, options); },
              [&] { return RunEngine(theirs, options); }, OursOverTheirs)};
}

Outcome CompareTurns(int rounds) {
  const Job job = ZooJob("resnet50");
  const JobGraph equal = JobGraphOf(job, kWorkers);
  JobGraph turns = equal;
  for (NetworkSpec& network : turns.networks) {
    network.sharing = NetworkSpec::Sharing::kTurns;
    network.turn = Bandwidth(job.bandwidth_bytes_per_second).TimeFor(kTurnBytes);
  }
  return CompareJobs(job, turns, equal, rounds);
}

Outcome CompareFirstCome(int rounds) {
  const Job job = ZooJob("resnet50");
  const JobGraph equal = JobGraphOf(job, kWorkers);
  JobGraph first_come = equal;
  for (NetworkSpec& network : first_come.networks)
    network.sharing = NetworkSpec::Sharing::kFirstCome;
  return CompareJobs(job, first_come, equal, rounds);
}

// Workers' links as fast as a server's, or as all servers' together.
Outcome CompareWorkerLinks(int rounds) {
  const Job job = ZooJob("resnet50", kServers);
  const auto with_capacity = [&](int64_t capacity) {
    JobGraph graph = JobGraphOf(job, kWorkers);
    for (NetworkSpec& network : graph.networks)
      network.worker_capacities.assign(kWorkers, capacity);
    return graph;
  };
  return CompareJobs(job, with_capacity(LinkLevel::kUnit),
                     with_capacity(LinkLevel::kUnit * kServers), rounds);
}

}  // namespace

void AddSharingRows(Registry& registry) {
  registry.Add({.name = "turns.w8",
                .sides = "engine, turns / equal shares, ResNet-50",
                .goal = AtMost(6, 3),
                .run = CompareTurns});
  registry.Add({.name = "first_come.w8",
                .sides = "engine, first come first served / equal shares, ResNet-50",
                .goal = AtMost(6, 3),
                .run = CompareFirstCome});
  registry.Add({.name = "servers.w8_m4_binding",
                .sides = "engine, 4 servers, workers' links bind / do not, ResNet-50",
                .goal = AtMost(6, 3),
                .run = CompareWorkerLinks});
}

}  // namespace stepcast::bench
