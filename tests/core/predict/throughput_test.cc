#include "core/predict/throughput.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast {
namespace {

using ::testing::Contains;
using ::testing::Field;
using testing::JobBuilder;

ThroughputAnswer Predicted(const Profile& profile, const ThroughputDraft& draft) {
  const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  const absl::StatusOr<ThroughputAnswer> answer = PredictThroughput(profile, *query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(ThroughputAnswer{});
}

Profile RandomSteps() {
  JobBuilder job;
  job.Upload(700, {job.Compute({500, 900, 2100}, {job.Download(1000)})});
  return job.Build();
}

// Everything after one another, so that no delay of one thing can be the gain of another.
Profile RandomChain(uint64_t seed) {
  Random random({seed, 41});
  JobBuilder job;
  int32_t last = -1;
  for (uint64_t i = 0; i < 3 + random.Below(8); ++i) {
    const JobBuilder::Waits waits = last < 0 ? JobBuilder::Waits{} : JobBuilder::Waits{last};
    const auto size = static_cast<int64_t>(1 + random.Below(100'000));
    const uint64_t kind = random.Below(4);
    last = kind == 0   ? job.Download(size, waits)
           : kind == 1 ? job.Upload(size, waits)
           : kind == 2 ? job.Compute(size, waits)
                       : job.Update(size, waits);
  }
  return job.Build();
}

TEST(ThroughputTest, OneWorkerHasASpeedupOfOne) {
  const ThroughputAnswer answer = Predicted(RandomSteps(), {.worker_counts = {1}, .options = {.steps_per_worker = 200}});
  EXPECT_EQ(answer.predictions[0].speedup, 1);
  EXPECT_EQ(answer.predictions[0].scaling_efficiency, 1);
}

TEST(ThroughputTest, OneWorkerOnARecordedChainTakesItsSum) {
  JobBuilder job;
  job.Upload(700, {job.Compute(500, {job.Download(1000)})});
  const Prediction prediction = Predicted(job.Build(), {.options = {.steps_per_worker = 100}}).predictions[0];
  EXPECT_DOUBLE_EQ(prediction.steps_per_second, 1e9 / 2200);
  EXPECT_NEAR(prediction.step_time.p99, 2200e-9, 2200e-12);
  EXPECT_EQ(prediction.bottleneck.resource, Resource::kDownlink);
  EXPECT_DOUBLE_EQ(prediction.bottleneck.fraction, 1000.0 / 2200);
  EXPECT_EQ(prediction.replications, 1);
  EXPECT_EQ(prediction.confidence_interval.lower, prediction.confidence_interval.upper);
}

// Most bytes of one step that cross one server's link in one direction.
int64_t MostBytesOnALink(const Profile& profile) {
  int64_t most = 0;
  for (int32_t server = 0; server < profile.parameter_servers(); ++server) {
    for (const Resource direction : {Resource::kDownlink, Resource::kUplink}) {
      int64_t bytes = 0;
      for (const Operation& operation : profile.operations()) {
        if (operation.resource == direction && operation.parameter_server == server) bytes += operation.size_bytes;
      }
      most = std::max(most, bytes);
    }
  }
  return most;
}

TEST(ThroughputTest, NoLinkCarriesMoreThanItsBandwidth) {
  constexpr int32_t kSteps = 120;
  constexpr int32_t kWorkers = 8;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Profile profile = testing::MakeRandomCase(seed).profile;
    const ThroughputDraft draft{.worker_counts = {1, 3, kWorkers}, .options = {.steps_per_worker = kSteps, .replications = 1}};
    for (const Prediction& prediction : Predicted(profile, draft).predictions) {
      const double bound = profile.platform().bandwidth_bytes_per_second / static_cast<double>(MostBytesOnALink(profile));
      // A worker's first and last counted steps may lie partly outside the counted time.
      EXPECT_LE(prediction.steps_per_second, bound * (1 + 2.0 / (kSteps - kSteps / 20)));
    }
  }
}

TEST(ThroughputTest, WorkersOnAChainNeverMakeMoreThanAsManyTimesOne) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const ThroughputAnswer answer = Predicted(RandomChain(seed), {.worker_counts = {1, 2, 5, 16}, .options = {.steps_per_worker = 60}});
    for (const Prediction& prediction : answer.predictions) EXPECT_LE(prediction.scaling_efficiency, 1 + 1e-9);
  }
}

// Graham's anomaly: alone, the long computation is ready first and holds up the short one that the server waits for; when two workers share the link
// its download comes later and the short one goes first. So "W workers make at most W times one" is no rule for every job.
TEST(ThroughputTest, AJobMayGainFromTheDelayThatSharingIs) {
  JobBuilder job;
  job.Compute(10'000, {job.Download(1000)});
  job.Update(10'000, {job.Compute(100, {job.Update(1500)})});
  const ThroughputAnswer answer = Predicted(job.Build(), {.worker_counts = {1, 2}, .options = {.steps_per_worker = 60}});
  EXPECT_DOUBLE_EQ(answer.predictions[0].steps_per_second, 1e9 / 21'100);
  EXPECT_DOUBLE_EQ(answer.predictions[1].steps_per_second, 2e9 / 12'000);
  EXPECT_GT(answer.predictions[1].scaling_efficiency, 1.7);
}

TEST(ThroughputTest, TheSameQueryHasTheSameAnswerAndAnotherSeedAnother) {
  const auto answer = [](uint64_t seed) {
    return Predicted(RandomSteps(), {.worker_counts = {4}, .options = {.steps_per_worker = 100, .seed = seed}}).predictions[0].steps_per_second;
  };
  EXPECT_EQ(answer(3), answer(3));
  EXPECT_NE(answer(3), answer(4));
}

TEST(ThroughputTest, TheBaselineIsSimulatedOnceForAll) {
  const SimulationOptionsDraft options{.steps_per_worker = 100, .replications = 1};
  const Profile profile = RandomSteps();
  const auto operations = [&](std::vector<int32_t> counts) {
    return Predicted(profile, {.worker_counts = std::move(counts), .options = options}).simulation.simulated_operations;
  };
  EXPECT_EQ(operations({1, 2, 3}), operations({2, 3}));
  EXPECT_EQ(operations({2, 2, 2}), operations({2}));
  EXPECT_EQ(operations({2, 3}), operations({2}) + operations({3}) - operations({1}));
}

TEST(ThroughputTest, ASpentTimeBudgetLeavesARunOfEachOrNoAnswer) {
  const Profile profile = RandomSteps();
  const absl::StatusOr<ThroughputQuery> query =
      ResolveThroughput(profile, {.worker_counts = {1, 2, 4}, .options = {.steps_per_worker = 2000, .replications = 6}});
  ASSERT_TRUE(query.ok());
  int answers = 0;
  int refusals = 0;
  int partial = 0;
  for (int allowed = 0; allowed < 120; allowed += 2) {
    int asked = 0;
    const auto stop = [&] { return asked++ < allowed ? absl::OkStatus() : TimeBudgetSpent(); };
    const absl::StatusOr<ThroughputAnswer> answer = PredictThroughput(profile, *query, stop);
    if (!answer.ok()) {
      EXPECT_TRUE(IsTimeBudgetSpent(answer.status())) << answer.status();
      EXPECT_EQ(answers, 0) << "more time must not take an answer away";
      ++refusals;
      continue;
    }
    ++answers;
    for (const Prediction& prediction : answer->predictions) {
      EXPECT_GE(prediction.replications, 1);
      EXPECT_GT(prediction.steps_per_second, 0);
      partial += prediction.replications < 6 ? 1 : 0;
    }
  }
  EXPECT_GT(answers, 0);
  EXPECT_GT(refusals, 0);
  EXPECT_GT(partial, 0);
}

TEST(ThroughputTest, ACancelledPredictionReturnsTheReason) {
  const Profile profile = RandomSteps();
  const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(profile, {.worker_counts = {2}});
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(PredictThroughput(profile, *query, [] { return absl::CancelledError("gone"); }).status(), absl::CancelledError("gone"));
}

TEST(ThroughputTest, FaultsCarryThePathsOfTheRequest) {
  const absl::StatusOr<ThroughputQuery> query = ResolveThroughput(RandomSteps(), {.worker_counts = {2, 0}, .options = {.replications = 0}});
  ASSERT_FALSE(query.ok());
  EXPECT_EQ(DetailsOf(query.status()).reason, "REQUEST_INVALID");
  for (const char* path : {"worker_counts[1]", "options.replications"}) {
    EXPECT_THAT(DetailsOf(query.status()).faults, Contains(Field(&Fault::field, path)));
  }
}

TEST(ThroughputTest, ScenariosAndWorkerCountsExcludeEachOther) {
  const absl::StatusOr<ThroughputQuery> query =
      ResolveThroughput(RandomSteps(), {.scenarios = {{.workers = 2}}, .worker_counts = {2}, .scenario = ScenarioDraft{}});
  ASSERT_FALSE(query.ok());
  for (const char* path : {"worker_counts", "scenario"}) EXPECT_THAT(DetailsOf(query.status()).faults, Contains(Field(&Fault::field, path)));
}

}  // namespace
}  // namespace stepcast
