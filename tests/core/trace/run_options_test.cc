#include "core/trace/run_options.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/base/stop_check.h"
#include "core/predict/throughput.h"
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
    const ThroughputQuery query{.scenarios = {random_case.scenario}, .options = options};
    const auto answer = PredictThroughput(random_case.profile, query, NeverStop);
    if (!answer.ok()) continue;  // too short to be measured
    const auto graph = RankedGraph::Make(random_case.profile, random_case.scenario, NeverStop);
    ASSERT_TRUE(graph.ok());
    const auto run = Simulate((*graph)->graph, FirstRunOptions(random_case.profile, random_case.scenario, options, **graph), NeverStop);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->steps_per_second, answer->predictions[0].steps_per_second);
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

}  // namespace
}  // namespace stepcast
