#include "core/recommend/throughput_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/communication/job.h"
#include "core/predict/throughput.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::throughput_bound_test {
namespace {

TEST(CurveCeilingTest, NothingKnownIsNoCeiling) {
  EXPECT_EQ(CurveCeiling().At(3), std::numeric_limits<double>::infinity());
}

TEST(CurveCeilingTest, MoreWorkersAreNoMoreEfficientThanFewer) {
  CurveCeiling curve;
  curve.Know(2, 10);
  EXPECT_EQ(curve.At(6), 30);
  EXPECT_EQ(curve.At(1), std::numeric_limits<double>::infinity());
}

TEST(CurveCeilingTest, EachWorkerMoreAddsNoMoreThanTheOneBefore) {
  CurveCeiling curve;
  curve.Know(2, 10);
  curve.Know(4, 14);
  EXPECT_EQ(curve.At(6), 18);
  curve.Know(8, 19);
  EXPECT_EQ(curve.At(6), 18);
  curve.Know(10, 20);
  EXPECT_EQ(curve.At(7), 18.5);  // on the line from 10 to 8
}

TEST(CurveCeilingTest, AFallingCurveMayStayAsHighAsItWas) {
  CurveCeiling curve;
  curve.Know(4, 20);
  curve.Know(6, 16);
  EXPECT_EQ(curve.At(8), 16);
  curve.Know(10, 12);
  EXPECT_EQ(curve.At(5),
            18);  // on the straight line from 4 to 6, which the line from 10 to 6 would cut
}

TEST(CurveCeilingTest, ExcessIsHowFarAResultIsAboveIt) {
  CurveCeiling curve;
  curve.Know(2, 10);
  curve.Know(4, 10);
  EXPECT_EQ(curve.ExcessOf(6, 10), 0);
  EXPECT_DOUBLE_EQ(curve.ExcessOf(6, 12), 0.2);
}

TEST(CurveCeilingTest, HoldsEveryConcaveCurveWhateverIsKnownOfIt) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 5});
    const double bend = 1 + 20 * random.Unit();
    const double fall = random.Unit() < 0.3 ? 0.01 * random.Unit() : 0;
    const auto value = [&](int32_t w) { return w / (w + bend) - fall * w; };
    CurveCeiling curve;
    std::set<int32_t> known;
    for (int i = 0; i < 12; ++i) {
      const auto workers = static_cast<int32_t>(1 + random.Below(64));
      if (!known.insert(workers).second) continue;
      EXPECT_LE(curve.ExcessOf(workers, value(workers)), 1e-12);
      curve.Know(workers, value(workers));
      for (int32_t w = 1; w <= 64; ++w) {
        if (known.count(w) == 0) {
          EXPECT_GE(curve.At(w), value(w) - 1e-12) << w;
        }
      }
    }
  }
}

ThroughputBound BoundOf(const Profile& profile) {
  const Scenario scenario = testing::Resolved(profile);
  return {*BuildJobProgram(profile, scenario, NeverStop), scenario};
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
      const ThroughputBound bound(*BuildJobProgram(profile, prediction.scenario, NeverStop),
                                  prediction.scenario);
      EXPECT_LE(prediction.steps_per_second, chance * (1 + 2.0 / (kSteps - 11)) *
                                                 bound.StepsPerSecond(prediction.scenario.workers));
    }
  }
}

}  // namespace
}  // namespace stepcast::throughput_bound_test
