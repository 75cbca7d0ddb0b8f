// Orders of transfers against graph order, orders.recorded.wN and orders.tac.wN, with a window,
// orders.window.wN, and against SimGrid, orders.simgrid.w8.
#include <cstdint>
#include <stdexcept>
#include <string>

#include "tests/bench/agreement.h"
#include "tests/bench/engine_run.h"
#include "tests/bench/job.h"
#include "tests/bench/peers/simgrid_peer.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/rows/steady_load.h"

namespace stepcast::bench {

namespace {

constexpr int64_t kWindowBytes = int64_t{4} << 20;
constexpr int32_t kStepsCompared = 2;

Outcome CompareOrders(TransferOrder order, int64_t window_bytes, int32_t workers, int rounds) {
  const Job ordered = OrderedZooJob("resnet50", order, window_bytes);
  const Job graph = OrderedZooJob("resnet50", TransferOrder::kGraph, window_bytes);
  const RunOptions options = OptionsForOperations(ordered, workers, kOurOperations);
  return {.rounds = TakeTurns(
              rounds, [&] { return RunEngine(ordered, options); },
              [&] { return RunEngine(graph, options); }, OursOverTheirs)};
}

Outcome CompareWithSimGrid(int32_t workers, int rounds) {
  const Job ordered = OrderedZooJob("resnet50", TransferOrder::kTac);
  const SimGridPeer peer(RearrangedZooJob("resnet50", TransferOrder::kTac));
  const RunOptions first = OptionsFor(ordered, workers, kStepsCompared);
  RequireAgreement("SimGrid", EngineStepEnds(ordered, first), peer.Run(first).step_ends,
                   kStepsCompared, kAgreement);
  const RunOptions ours = OptionsForOperations(ordered, workers, kOurOperations);
  const RunOptions theirs = OptionsForOperations(ordered, workers, kSlowOperations);
  return {.rounds = TakeTurns(
              rounds, [&] { return RunEngine(ordered, ours); },
              [&] { return peer.Run(theirs).cost; }, TheirsOverOurs)};
}

}  // namespace

void AddOrderRows(Registry& registry) {
  for (const int32_t workers : {8, 64}) {
    const std::string count = std::to_string(workers);
    registry.Add({.name = "orders.recorded.w" + count,
                  .sides = "engine, recorded / graph order, ResNet-50",
                  .goal = AtMost(2, 1.3),
                  .run = [workers](int rounds) {
                    return CompareOrders(TransferOrder::kRecorded, 0, workers, rounds);
                  }});
    registry.Add({.name = "orders.tac.w" + count,
                  .sides = "engine, TAC / graph order, ResNet-50",
                  .goal = AtMost(2, 1.3),
                  .run = [workers](int rounds) {
                    return CompareOrders(TransferOrder::kTac, 0, workers, rounds);
                  }});
    registry.Add({.name = "orders.window.w" + count,
                  .sides = "engine, recorded / graph order, window 4 MiB, ResNet-50",
                  .goal = AtMost(2.5, 1.5),
                  .run = [workers](int rounds) {
                    return CompareOrders(TransferOrder::kRecorded, kWindowBytes, workers, rounds);
                  }});
  }
  registry.Add({.name = "orders.simgrid.w8",
                .sides = "SimGrid / engine, TAC order, ResNet-50",
                .goal = AtLeast(80, 150),
                .run = [](int rounds) { return CompareWithSimGrid(8, rounds); }});
}

}  // namespace stepcast::bench
