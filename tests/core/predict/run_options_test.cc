#include "core/predict/run_options.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "core/base/stop_check.h"
#include "core/communication/parameter_servers.h"
#include "core/predict/replications.h"
#include "core/predict/throughput.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::run_options_test {
namespace {

// Whatever a scenario asks for, and on the plain engine too, which traces.
TEST(RunOptionsTest, TheFirstReplicationIsTheOneThatAPredictionCounts) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const testing::RandomCase random_case = testing::MakeRandomCase(seed);
    const SimulationOptions options{
        .steps_per_worker = random_case.steps_per_worker,
        .warmup_steps = random_case.warmup_steps,
        .seed = seed,
        .replications = 1,
        .start = seed % 3 == 0 && random_case.scenario.start_offsets_ns.empty()
                     ? Start::kStaggered
                     : Start::kSimultaneous};
    const ThroughputQuery query{.scenarios = {random_case.scenario}, .options = options};
    const auto answer = PredictThroughput(random_case.profile, query, NeverStop);
    if (!answer.ok()) continue;  // too short to be measured
    const auto graph = RankedGraph::Make(random_case.profile, random_case.scenario, NeverStop);
    ASSERT_TRUE(graph.ok());
    RunOptions plain = RunOptionsOf(random_case.profile, random_case.scenario, options, 0);
    plain.fastest_path = EnginePath::kPlain;
    const auto run = Simulate((*graph)->JobOf(random_case.scenario), plain, NeverStop);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->steps_per_second, answer->predictions[0].steps_per_second);
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

RunOptions OptionsOf(const SimulationOptions& options, int32_t replication) {
  const testing::RandomCase random_case = testing::MakeRandomCase(1);
  Scenario scenario = random_case.scenario;
  scenario.workers = 3;
  scenario.start_offsets_ns.clear();
  scenario.worker_groups.clear();
  return RunOptionsOf(random_case.profile, scenario, options, replication);
}

TEST(RunOptionsTest, StaggeredStartsAreDrawnAnewInEachReplication) {
  const SimulationOptions staggered{.seed = 7, .start = Start::kStaggered};
  EXPECT_EQ(OptionsOf(staggered, 1).start_offsets, OptionsOf(staggered, 1).start_offsets);
  EXPECT_NE(OptionsOf(staggered, 1).start_offsets, OptionsOf(staggered, 2).start_offsets);
  EXPECT_EQ(OptionsOf({.seed = 7, .start = Start::kSimultaneous}, 1).start_offsets,
            std::vector<Span>(3));
  EXPECT_EQ(OptionsOf(staggered, 2).replication, 2U);
}

TEST(RunOptionsTest, AHorizonTakesThePlaceOfStepsAndWarmUp) {
  const RunOptions steps = OptionsOf({.steps_per_worker = 1000,
                                      .warmup_steps = 50,
                                      .horizon = Horizon::kFirstSteps,
                                      .horizon_steps = 7},
                                     0);
  EXPECT_EQ(steps.steps_per_worker, 7);
  EXPECT_EQ(steps.warmup_steps, 0);
  EXPECT_EQ(steps.until, kEndOfTime);
  const RunOptions seconds =
      OptionsOf({.horizon = Horizon::kFirstSeconds, .horizon_seconds = 2.5}, 0);
  EXPECT_EQ(seconds.until, Instant{} + FromSeconds(2.5));
  const RunOptions steady = OptionsOf({.steps_per_worker = 1000, .warmup_steps = 50}, 0);
  EXPECT_EQ(steady.steps_per_worker, 1000);
  EXPECT_EQ(steady.warmup_steps, 50);
  EXPECT_EQ(steady.until, kEndOfTime);
}

}  // namespace
}  // namespace stepcast::run_options_test
