// The engine against the paper's pseudo-code: pseudocode.wN.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "tests/bench/agreement.h"
#include "tests/bench/engine_run.h"
#include "tests/bench/job.h"
#include "tests/bench/peers/pseudo_code_peer.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/rows/steady_load.h"

namespace stepcast::bench {

namespace {

Outcome Run(int32_t workers, int rounds) {
  const Job job = ZooJob("resnet50");
  const PseudoCodePeer peer(*job.program);
  // With many workers the rounding of a tick has grown past the tolerance by the second step.
  const int32_t compared = workers > 16 ? 1 : 2;
  const RunOptions first = OptionsFor(job, workers, compared);
  RequireAgreement("the pseudo-code", EngineStepEnds(job, first), peer.Run(first).step_ends,
                   static_cast<size_t>(compared), kAgreement);
  const RunOptions ours = OptionsForOperations(job, workers, kOurOperations);
  const RunOptions theirs =
      OptionsForOperations(job, workers, workers > 16 ? kSlowOperations : kOurOperations);
  return {.rounds = TakeTurns(
              rounds, [&] { return RunEngine(job, ours); }, [&] { return peer.Run(theirs).cost; },
              TheirsOverOurs)};
}

}  // namespace

void AddPseudoCodeRows(Registry& registry) {
  for (const auto& [workers, goal] : {std::pair{1, AtLeast(3, 6)},
                                      {4, AtLeast(6, 15)},
                                      {8, AtLeast(10, 28)},
                                      {16, AtLeast(25, 65)},
                                      {64, AtLeast(100, 450)}}) {
    registry.Add({.name = "pseudocode.w" + std::to_string(workers),
                  .sides = "Algorithm 3.1 / engine, ResNet-50",
                  .goal = goal,
                  .run = [workers = workers](int rounds) { return Run(workers, rounds); }});
  }
}

}  // namespace stepcast::bench
