// The engine against SimGrid, one server: simgrid.wN, and the plain engine: plain.simgrid.w8.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/bench/agreement.h"
#include "tests/bench/engine_run.h"
#include "tests/bench/job.h"
#include "tests/bench/peers/simgrid_peer.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/rows/steady_load.h"

namespace stepcast::bench {

namespace {

constexpr int32_t kStepsCompared = 2;

Outcome Run(int32_t workers, EnginePath fastest_path, int rounds) {
  const Job job = ZooJob("resnet50");
  const SimGridPeer peer(job);
  RunOptions first = OptionsFor(job, workers, kStepsCompared);
  first.fastest_path = fastest_path;
  RequireAgreement("SimGrid", EngineStepEnds(job, first), peer.Run(first).step_ends, kStepsCompared,
                   kAgreement);
  RunOptions ours = OptionsForOperations(job, workers, kOurOperations);
  ours.fastest_path = fastest_path;
  const RunOptions theirs = OptionsForOperations(job, workers, kSlowOperations);
  return {.rounds = TakeTurns(
              rounds, [&] { return RunEngine(job, ours); }, [&] { return peer.Run(theirs).cost; },
              TheirsOverOurs)};
}

}  // namespace

void AddSimGridRows(Registry& registry) {
  for (const int32_t workers : {1, 4, 8, 16}) {
    registry.Add(
        {.name = "simgrid.w" + std::to_string(workers),
         .sides = "SimGrid / engine, ResNet-50",
         .goal = AtLeast(80, 150),
         .run = [workers](int rounds) { return Run(workers, EnginePath::kMemoised, rounds); }});
  }
  registry.Add({.name = "plain.simgrid.w8",
                .sides = "SimGrid / plain engine, ResNet-50",
                .goal = AtLeast(25, 40),
                .run = [](int rounds) { return Run(8, EnginePath::kPlain, rounds); }});
}

}  // namespace stepcast::bench
