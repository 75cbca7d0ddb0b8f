#include "core/recommend/throughput_bound.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/stop_check.h"
#include "core/predict/throughput.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::throughput_bound_test {
namespace {

ThroughputBound BoundOf(const Profile& profile) {
  return ThroughputBound(BuildProgram(profile, testing::Resolved(profile)));
}

TEST(ThroughputBoundTest, WorkersUpToTheLink) {
  testing::JobBuilder job;
  job.Upload(500, {job.Compute(3500, {job.Download(1000)})});
  const ThroughputBound bound = BoundOf(job.Build());
  EXPECT_DOUBLE_EQ(bound.StepsPerSecond(1), 1e9 / 5000);
  EXPECT_DOUBLE_EQ(bound.StepsPerSecond(4), 4e9 / 5000);
  EXPECT_DOUBLE_EQ(bound.StepsPerSecond(6), 1e9 / 1000);
}

TEST(ThroughputBoundTest, AWorkersBusiestLaneMayTakeLongerThanItsLongestChain) {
  testing::JobBuilder job;
  job.Compute(3000);
  job.Compute(3000);
  EXPECT_DOUBLE_EQ(BoundOf(job.Build()).StepsPerSecond(2), 2e9 / 6000);
}

TEST(ThroughputBoundTest, RecordedStepsCountWithTheirMean) {
  testing::JobBuilder job;
  job.Compute({1000, 3000});
  EXPECT_DOUBLE_EQ(BoundOf(job.Build()).StepsPerSecond(1), 1e9 / 2000);
}

TEST(ThroughputBoundTest, WithoutTransfersThereIsNoLink) {
  testing::JobBuilder job;
  job.Compute(1000);
  EXPECT_DOUBLE_EQ(BoundOf(job.Build()).StepsPerSecond(1000), 1e9);
}

// Whatever the order, the sharing, the servers and the start: where workers start apart they may
// even gain from delays.
TEST(ThroughputBoundTest, NoSimulationExceedsIt) {
  constexpr int32_t kSteps = 120;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Profile profile = testing::MakeRandomCase(seed).profile;
    ThroughputDraft draft{
        .worker_counts = {1, 2, 5, 9},
        .options = {.steps_per_worker = kSteps, .warmup_steps = 10, .replications = 2}};
    draft.scenario.emplace();
    if (seed % 2 == 0) draft.scenario->servers().transfer_order = TransferOrder::kRandom;
    if (seed % 3 == 0) draft.scenario->servers().synchronization = Synchronization::kSynchronous;
    if (seed % 5 == 0) draft.scenario->servers().link_sharing = FirstCome{};
    draft.options.start = seed % 7 < 3 ? Start::kStaggered : Start::kSimultaneous;
    const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, draft);
    ASSERT_TRUE(query.ok()) << query.status();
    const absl::StatusOr<ThroughputAnswer> answer = PredictThroughput(profile, *query, NeverStop);
    ASSERT_TRUE(answer.ok()) << answer.status();
    // By chance: recorded steps of random cases are far from alike.
    const double chance = profile.steps().size() > 1 ? 1.25 : 1;
    for (const Prediction& prediction : answer->predictions) {
      const ThroughputBound bound(BuildProgram(profile, prediction.scenario));
      EXPECT_LE(prediction.steps_per_second, chance * (1 + 2.0 / (kSteps - 11)) *
                                                 bound.StepsPerSecond(prediction.scenario.workers));
    }
  }
}

}  // namespace
}  // namespace stepcast::throughput_bound_test
