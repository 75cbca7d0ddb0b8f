// The engine against a bare pass of list scheduling: list_scheduling.
#include <cstdint>

#include "tests/bench/agreement.h"
#include "tests/bench/engine_run.h"
#include "tests/bench/job.h"
#include "tests/bench/peers/list_scheduling_peer.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/rows/steady_load.h"

namespace stepcast::bench {

namespace {

// One worker alone rounds nothing, so every end is the same double.
constexpr int32_t kStepsCompared = 20;

Outcome Run(int rounds) {
  const Job job = ZooJob("resnet50");
  const ListSchedulingPeer peer(*job.program);
  const RunOptions first = OptionsFor(job, 1, kStepsCompared);
  RequireAgreement("list scheduling", EngineStepEnds(job, first), peer.Run(first).step_ends,
                   kStepsCompared, 0);
  const RunOptions options = OptionsForOperations(job, 1, kOurOperations);
  return {.rounds = TakeTurns(
              rounds, [&] { return RunEngine(job, options); },
              [&] { return peer.Run(options).cost; }, OursOverTheirs)};
}

}  // namespace

void AddListSchedulingRow(Registry& registry) {
  registry.Add({.name = "list_scheduling",
                .sides = "engine / bare pass, ResNet-50, W=1",
                .goal = AtMost(3, 1.3),
                .run = Run});
}

}  // namespace stepcast::bench
