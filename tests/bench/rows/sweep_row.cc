// A whole sweep on one core against SimGrid: sweep.simgrid.
#include <cstdint>

#include "absl/strings/str_format.h"

#include "tests/bench/agreement.h"
#include "tests/bench/engine_run.h"
#include "tests/bench/job.h"
#include "tests/bench/peers/simgrid_peer.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/rows/steady_load.h"

namespace stepcast::bench {

namespace {

constexpr int32_t kFewestWorkers = 2;
constexpr int32_t kMaxWorkers = 10;
constexpr int32_t kSteps = 1000;
constexpr int32_t kPeerSteps = 10;

Cost RunOurs(const Job& job) {
  Cost sum;
  for (int32_t workers = kFewestWorkers; workers <= kMaxWorkers; ++workers) {
    const Cost one = RunEngine(job, OptionsFor(job, workers, kSteps));
    sum.cpu_ns += one.cpu_ns;
    sum.operations += one.operations;
  }
  return sum;
}

// Each count's cost an operation, at as many operations as kSteps a worker have.
Cost RunTheirs(const Job& job, const SimGridPeer& peer) {
  Cost sum;
  for (int32_t workers = kFewestWorkers; workers <= kMaxWorkers; ++workers) {
    const int64_t operations = int64_t{workers} * kSteps * job.program->size();
    sum.cpu_ns += peer.Run(OptionsFor(job, workers, kPeerSteps)).cost.PerOperation() *
                  static_cast<double>(operations);
    sum.operations += operations;
  }
  return sum;
}

Outcome Run(int rounds) {
  const Job job = ZooJob("inception_v3");
  const SimGridPeer peer(job);
  for (const int32_t workers : {kFewestWorkers, kMaxWorkers}) {
    const RunOptions first = OptionsFor(job, workers, 2);
    RequireAgreement("SimGrid", EngineStepEnds(job, first), peer.Run(first).step_ends, 2,
                     kAgreement);
  }
  return {
      .rounds = TakeTurns(
          rounds, [&] { return RunOurs(job); }, [&] { return RunTheirs(job, peer); },
          TheirsOverOurs),
      .note = absl::StrFormat("SimGrid measured on %d steps a worker of %d, scaled per operation",
                              kPeerSteps, kSteps)};
}

}  // namespace

void AddSweepRow(Registry& registry) {
  registry.Add({.name = "sweep.simgrid",
                .sides = "SimGrid / engine, Inception-v3, W=2..10, 1000 steps",
                .goal = AtLeast(100, 200),
                .rounds = 3,
                .run = Run});
}

}  // namespace stepcast::bench
