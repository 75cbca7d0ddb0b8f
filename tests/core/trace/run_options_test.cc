#include "core/trace/run_options.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "core/base/stop_check.h"
#include "tests/core/engine/random_case.h"

namespace stepcast {
namespace {

// Whatever a scenario asks for, a trace shows the run that a prediction counts.
TEST(RunOptionsTest, ATraceIsOfTheFirstRunOfAPrediction) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const testing::RandomCase random_case = testing::MakeRandomCase(seed);
    const SimulationOptions options{
        .steps_per_worker = random_case.steps_per_worker,
        .warmup_steps = random_case.warmup_steps,
        .seed = seed,
        .replications = 1,
        .start = seed % 3 == 0 && random_case.scenario.start_offsets_ns.empty() ? Start::kStaggered : Start::kSimultaneous};
    const auto graph = RankedGraph::Make(random_case.profile, random_case.scenario, NeverStop);
    ASSERT_TRUE(graph.ok());
    Replications runs(random_case.profile, random_case.scenario, options, *graph);
    const bool measured = runs.Run(NeverStop).ok();
    const auto run = Simulate((*graph)->graph, FirstRunOptions(random_case.profile, random_case.scenario, options, **graph), NeverStop);
    ASSERT_TRUE(run.ok()) << run.status();
    ASSERT_EQ(run->measured, measured);
    if (!measured) continue;
    ++compared;
    EXPECT_EQ(run->steps_per_second, runs.StepsPerSecond());
    EXPECT_EQ(run->simulated_operations, runs.simulated_operations());
  }
  EXPECT_GT(compared, 200);
}

}  // namespace
}  // namespace stepcast
