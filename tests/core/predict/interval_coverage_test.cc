// The coverage that the interval claims, and the warning of a run that has not converged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "core/base/stop_check.h"
#include "core/predict/throughput.h"
#include "core/zoo/model_zoo.h"
#include "tests/core/engine/random_case.h"
#include "tests/support/repetitions.h"

namespace stepcast::interval_coverage_test {
namespace {

constexpr int kSeeds = testing::Repetitions(200);

Profile Zoo(const std::string& model, double bytes_per_second, double variation) {
  absl::StatusOr<Profile> profile =
      BuildZooProfile(model, {.platform = {.bandwidth_bytes_per_second = bytes_per_second},
                              .variation = {.own = variation, .steps = 20, .seed = 3}});
  EXPECT_TRUE(profile.ok()) << profile.status();
  return *std::move(profile);
}

// Deep in what varies: a step by a fifth, each operation by as much again.
Profile Collectives(double bytes_per_second) {
  ZooOptions options{.platform = {.bandwidth_bytes_per_second = bytes_per_second},
                     .variation = {.own = 0.2, .common = 0.2, .steps = 20, .seed = 3}};
  options.communication = ZooCommunication::kAllReduce;
  absl::StatusOr<Profile> profile = BuildZooProfile("resnet50", options);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return *std::move(profile);
}

Prediction Predict(const Profile& profile, int32_t workers, const SimulationOptionsDraft& options) {
  const absl::StatusOr<ThroughputQuery> query =
      ResolveThroughput(profile, {.worker_counts = {workers}, .options = options});
  EXPECT_TRUE(query.ok()) << query.status();
  absl::StatusOr<ThroughputAnswer> answer = PredictThroughput(profile, *query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer->predictions.front();
}

// Workers on a saturated link forget their start later than others, so the first needs more steps.
struct Job {
  std::string model;
  double bytes_per_second = 0;
  int32_t workers = 0;
  int32_t steps = 200;
};

class IntervalCoverageTest : public ::testing::TestWithParam<Job> {};

// A job runs once: the next run of the same length, with another seed, falls where run_interval
// says, converged or not.
TEST_P(IntervalCoverageTest, HoldsTheLongRunsMeanAndTheNextSingleRun) {
  const Job& job = GetParam();
  const Profile profile = Zoo(job.model, job.bytes_per_second, 0.2);
  // As many replications as the short runs have, each a hundred times as long.
  const Prediction truth =
      Predict(profile, job.workers,
              {.steps_per_worker = testing::Repetitions(100) * job.steps, .seed = 1'000'003});
  int held = 0;
  int converged = 0;
  double width = 0;
  int runs_held = 0;
  double runs_width = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Prediction prediction =
        Predict(profile, job.workers, {.steps_per_worker = job.steps, .seed = seed});
    const Prediction next =
        Predict(profile, job.workers,
                {.steps_per_worker = job.steps, .seed = seed + 1'000'000, .replications = 1});
    const Interval& runs = prediction.run_interval;
    runs_held += runs.lower <= next.examples_per_second && next.examples_per_second <= runs.upper;
    runs_width += (runs.upper - runs.lower) / truth.examples_per_second;
    if (!prediction.steady_state) continue;
    ++converged;
    width += (prediction.confidence_interval.upper - prediction.confidence_interval.lower) /
             truth.examples_per_second;
    held += prediction.confidence_interval.lower <= truth.examples_per_second &&
            truth.examples_per_second <= prediction.confidence_interval.upper;
  }
  RecordProperty("held", held);
  RecordProperty("converged", converged);
  std::printf(
      "%s, %d workers: the 95 %% interval held the long run's mean in %d of %d converged runs of "
      "%d; mean width %.2f %%\n",
      job.model.c_str(), job.workers, held, converged, kSeeds, 100 * width / converged);
  std::printf(
      "%s, %d workers: the 95 %% interval of single runs held the next one in %d of %d; mean width "
      "%.2f %%\n",
      job.model.c_str(), job.workers, runs_held, kSeeds, 100 * runs_width / kSeeds);
  STEPCAST_SKIP_SHARES_UNDER_SANITIZERS();
  EXPECT_GE(runs_held, kSeeds * 9 / 10);
  EXPECT_LE(runs_width / kSeeds, 0.2);
  EXPECT_GE(converged, kSeeds / 2);
  EXPECT_GE(held, converged * 9 / 10);
  // One that holds everything says nothing.
  EXPECT_LE(width / converged, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Models, IntervalCoverageTest,
                         ::testing::Values(Job{"alexnet", 1.25e10, 8, 500},
                                           Job{"googlenet", 1.25e10, 4}, Job{"vgg16", 1.25e10, 3}),
                         [](const auto& job) { return job.param.model; });

// Runs of the default length, which is short, and as many of them as the defaults want.
TEST(CollectivesCoverageTest, ShortRunsHoldTheLongRunsMeanAndAreAsPreciseAsTheyShouldBe) {
  for (const auto& [bytes_per_second, workers] :
       {std::pair(1.25e10, 1), std::pair(1.25e10, 4), std::pair(2e9, 8), std::pair(5e8, 16)}) {
    const Profile profile = Collectives(bytes_per_second);
    const double truth = Predict(profile, workers,
                                 {.steps_per_worker = testing::Repetitions(50) * 1000,
                                  .seed = 1'000'003,
                                  .replications = 5})
                             .examples_per_second;
    int held = 0;
    int steady = 0;
    int32_t least = 1000;
    int32_t most = 0;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const Prediction prediction = Predict(profile, workers, {.seed = seed});
      const Interval& interval = prediction.confidence_interval;
      held += interval.lower <= truth && truth <= interval.upper;
      steady += prediction.steady_state;
      least = std::min(least, prediction.replications);
      most = std::max(most, prediction.replications);
      const double half_width = (interval.upper - interval.lower) / 2;
      EXPECT_TRUE(prediction.replications == 20 || half_width <= 0.005 * truth * 1.05) << seed;
      EXPECT_LE(half_width, 0.02 * truth) << seed;
    }
    std::printf(
        "ResNet-50, all-reduce, %g bytes/s, %d workers: the 95 %% interval held the long run's "
        "mean in %d of %d; %d to %d runs\n",
        bytes_per_second, workers, held, kSeeds, least, most);
    if (testing::kSanitized) continue;
    EXPECT_GE(held, kSeeds * 85 / 100);
    EXPECT_GE(steady, kSeeds * 9 / 10);
  }
}

// A request without options, answered by runs as short as can be.
TEST_P(IntervalCoverageTest, WithoutOptionsHoldsTheLongRunsMean) {
  const Job& job = GetParam();
  const Profile profile = Zoo(job.model, job.bytes_per_second, 0.2);
  const double truth =
      Predict(profile, job.workers,
              {.steps_per_worker = testing::Repetitions(100) * job.steps, .seed = 1'000'003})
          .examples_per_second;
  int held = 0;
  int next_held = 0;
  int steady = 0;
  double width = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Prediction prediction = Predict(profile, job.workers, {.seed = seed});
    const Interval& interval = prediction.confidence_interval;
    held += interval.lower <= truth && truth <= interval.upper;
    steady += prediction.steady_state;
    width += (interval.upper - interval.lower) / truth;
    const double next = Predict(profile, job.workers,
                                {.steps_per_worker = prediction.steps_per_worker,
                                 .seed = seed + 1'000'000,
                                 .replications = 1})
                            .examples_per_second;
    next_held += prediction.run_interval.lower <= next && next <= prediction.run_interval.upper;
  }
  std::printf(
      "%s, %d workers, no options: the 95 %% interval held the long run's mean in %d of %d; mean "
      "width %.2f %%; that of single runs held the next one in %d\n",
      job.model.c_str(), job.workers, held, kSeeds, 100 * width / kSeeds, next_held);
  STEPCAST_SKIP_SHARES_UNDER_SANITIZERS();
  EXPECT_GE(held, kSeeds * 9 / 10);
  EXPECT_GE(next_held, kSeeds * 9 / 10);
  EXPECT_GE(steady, kSeeds * 9 / 10);
  EXPECT_LE(width / kSeeds, 0.02);
}

// Short answers beside answers of 1000 steps a worker, over random jobs that both call steady.
TEST(DefaultLengthTest, ShortRunsSayWhatLongOnesSayWithinThePrecisionOfBoth) {
  int compared = 0;
  int agreed = 0;
  int shorter = 0;
  double worst = 0;
  double bias = 0;
  int64_t operations[2] = {};
  for (uint64_t seed = 1; seed <= testing::Repetitions(200u); ++seed) {
    const Profile profile = testing::MakeRandomCase(seed).profile;
    const auto workers = static_cast<int32_t>(1 + seed % 16);
    const auto predict = [&](const SimulationOptionsDraft& options, int64_t& counted) {
      const auto query =
          ResolveThroughput(profile, {.worker_counts = {workers}, .options = options});
      EXPECT_TRUE(query.ok()) << query.status();
      absl::StatusOr<ThroughputAnswer> answer = PredictThroughput(profile, *query, NeverStop);
      EXPECT_TRUE(answer.ok()) << answer.status();
      counted += answer->simulation.simulated_operations;
      return answer->predictions.front();
    };
    const Prediction unasked = predict({.seed = seed}, operations[0]);
    const Prediction long_runs = predict({.steps_per_worker = 1000, .seed = seed}, operations[1]);
    if (!unasked.steady_state || !long_runs.steady_state) continue;
    ++compared;
    shorter += unasked.steps_per_worker < 1000;
    const double off = unasked.examples_per_second / long_runs.examples_per_second - 1;
    const auto half_width = [](const Prediction& prediction) {
      const Interval& interval = prediction.confidence_interval;
      return (interval.upper - interval.lower) / 2 / prediction.examples_per_second;
    };
    // At least what an answer is known to where nobody asks for more.
    const double explained = std::max(0.01, std::hypot(half_width(unasked), half_width(long_runs)));
    agreed += std::abs(off) <= explained;
    worst = std::max(worst, std::abs(off) / explained);
    bias += off;
  }
  std::printf(
      "%d random jobs steady by both, %d of them in fewer steps: %d within 1 %% or the intervals, "
      "the worst %.1f times as far; mean difference %.3f %%; %.3g operations for %.3g\n",
      compared, shorter, agreed, worst, 100 * bias / compared, static_cast<double>(operations[0]),
      static_cast<double>(operations[1]));
  STEPCAST_SKIP_SHARES_UNDER_SANITIZERS();
  EXPECT_GE(compared, 90);
  EXPECT_GE(shorter, 75);
  EXPECT_GE(agreed, compared * 95 / 100);
  EXPECT_LE(std::abs(bias / compared), 0.002);
}

// Eight workers that begin together stay in step for thousands of steps, far below what the link
// would carry.
TEST(SteadyStateTest, ModelsThatRememberTheirStartSayThatTheyHaveNotConverged) {
  const Profile profile = Zoo("inception_v3", 1.25e9, 0.02);
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const Prediction prediction = Predict(profile, 8, {.steps_per_worker = 200, .seed = seed});
    EXPECT_FALSE(prediction.steady_state)
        << "seed " << seed << ": " << prediction.examples_per_second;
    EXPECT_FALSE(prediction.warnings.empty());
  }
}

// A step of one second or of three, by an even chance, and a ring of 1.5 s: of four workers the
// slowest takes 2.875 s on the mean. What is dropped must not be chosen by what was drawn: MSER-5
// did, and means were 0.3 % off, with 81 of 100 intervals that held the truth.
TEST(IntervalCoverageOfTwoLengthsTest, HoldsTheExactMeanOfWorkersThatMeet) {
  constexpr int64_t kSecond = 1'000'000'000;
  ProfileDraft draft{.batch_size = 30, .platform = {.bandwidth_bytes_per_second = 1e8}};
  draft.operations = {{.name = "backward", .resource = Resource::kWorker, .pass = Pass::kBackward},
                      {.name = "gradient",
                       .resource = Resource::kCollective,
                       .size_bytes = 100'000'000,
                       .waiting_for = {0},
                       .collective = Collective::kAllReduce}};
  for (const int64_t length : {kSecond, 3 * kSecond})
    draft.steps.push_back({.start_ns = {0, length}, .end_ns = {length, length}});
  const Profile profile = Profile::Create(draft).value();
  ScenarioDraft scenario{.workers = 4};
  scenario.communication = AllReduceDraft{.latency_seconds = 0};
  const double truth = 4 * 30 / (2.875 + 1.5);
  constexpr int kTried = testing::Repetitions(100);
  int held = 0;
  double bias = 0;
  for (uint64_t seed = 1; seed <= kTried; ++seed) {
    ThroughputDraft asked{.scenarios = {scenario}, .options = {.seed = seed}};
    asked.options.step_variation = StepSource::kAsRecorded;
    const Prediction prediction =
        PredictThroughput(profile, *ResolveThroughput(profile, asked), NeverStop)->predictions[0];
    const Interval& interval = prediction.simulation_interval;
    held += interval.lower <= truth && truth <= interval.upper;
    bias += prediction.examples_per_second / truth - 1;
  }
  std::printf(
      "steps of two lengths: %d of %d intervals hold the exact mean, which is %.3f %% off\n", held,
      kTried, 100 * bias / kTried);
  STEPCAST_SKIP_SHARES_UNDER_SANITIZERS();
  EXPECT_GE(held, kTried * 9 / 10);
  EXPECT_LE(std::abs(bias / kTried), 0.001);
}

}  // namespace
}  // namespace stepcast::interval_coverage_test
