#include "core/compare/synchronous_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/compare/comparison.h"

namespace stepcast::synchronous_models_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// At a thousand million bytes a second: forward 1000 ns, then two times 500 ns of backward, after
// each of which a gradient of 800 bytes is ready. One step a length given, which backward's second
// half takes.
Profile TwoGradients(const std::vector<int64_t>& last_ns = {500}) {
  ProfileDraft draft{.batch_size = 10, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "forward", .resource = Resource::kWorker},
                      {.name = "backward/1", .resource = Resource::kWorker, .waiting_for = {0}},
                      {.name = "all_reduce/1",
                       .resource = Resource::kCollective,
                       .size_bytes = 800,
                       .waiting_for = {1},
                       .collective = Collective::kAllReduce},
                      {.name = "backward/0", .resource = Resource::kWorker, .waiting_for = {1}},
                      {.name = "all_reduce/0",
                       .resource = Resource::kCollective,
                       .size_bytes = 800,
                       .waiting_for = {3},
                       .collective = Collective::kAllReduce}};
  for (const int64_t ns : last_ns) {
    draft.steps.push_back({.start_ns = {0, 1000, 1500, 1500, 1500 + ns},
                           .end_ns = {1000, 1500, 1500, 1500 + ns, 1500 + ns}});
  }
  return Profile::Create(std::move(draft)).value();
}

ComparisonAnswer Compared(const Profile& profile, ComparisonDraft draft) {
  if (!draft.options.steps_per_worker) draft.options.steps_per_worker = 100;
  if (std::holds_alternative<std::monostate>(draft.scenario.communication))
    draft.scenario.communication = AllReduceDraft{};
  auto& job = std::get<AllReduceDraft>(draft.scenario.communication);
  job.latency_seconds = job.latency_seconds.value_or(0);
  const absl::StatusOr<ComparisonQuery> query = ResolveComparison(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  absl::StatusOr<ComparisonAnswer> answer = CompareModels(profile, *query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? *std::move(answer) : ComparisonAnswer{};
}

// Nanoseconds of a step, by rival.
std::vector<double> StepsOf(const ModelComparison& comparison) {
  std::vector<double> steps;
  for (const ComparedPrediction& rival : comparison.rivals)
    steps.push_back(1e9 * comparison.prediction.scenario.workers / rival.steps_per_second);
  return steps;
}

TEST(CollectiveComparisonTest, TheModelsOfTwoGradientsFollowByHand) {
  const ComparisonAnswer answer = Compared(TwoGradients(), {.worker_counts = {4, 1}});
  ASSERT_EQ(answer.comparisons.size(), 2U);
  const ModelComparison& four = answer.comparisons[0];
  std::vector<ComparedModel> models;
  for (const ComparedPrediction& rival : four.rivals) models.push_back(rival.model);
  EXPECT_THAT(models, ElementsAre(ComparedModel::kCoarseTensors, ComparedModel::kPollux,
                                  ComparedModel::kNoOverlap, ComparedModel::kPaleo));
  // Each collective takes 6 rounds of 200 ns: the first until 2700, the second until 3900.
  EXPECT_NEAR(4e9 / four.prediction.steps_per_second, 3900, 0.01);
  const std::vector<double> steps = StepsOf(four);
  EXPECT_NEAR(steps[0], 3100, 0.01) << "800 ns each, from 1500 on, whatever the workers";
  EXPECT_NEAR(steps[1], 3900, 20) << "fitted to this very step";
  EXPECT_NEAR(steps[2], 2000 + 2400, 0.01);
  EXPECT_NEAR(steps[3], 2000 + 2400, 0.01);
  for (const ComparedPrediction& rival : four.rivals) {
    const double ours = four.prediction.examples_per_second;
    EXPECT_EQ(rival.examples_per_second, 10 * rival.steps_per_second);
    EXPECT_DOUBLE_EQ(rival.relative_difference, (rival.examples_per_second - ours) / ours);
    EXPECT_EQ(rival.unavailable_reason, "");
  }
  // One worker meets nobody, but for Daydream's tensors, which know nothing of workers.
  const std::vector<double> one = StepsOf(answer.comparisons[1]);
  EXPECT_NEAR(one[0], 3100, 0.01);
  for (const size_t i : {1, 2, 3}) EXPECT_NEAR(one[i], 2000, 0.01) << i;
  ASSERT_TRUE(answer.collective_inputs.has_value());
  EXPECT_DOUBLE_EQ(answer.collective_inputs->computation_seconds, 2e-6);
  EXPECT_EQ(answer.collective_inputs->bytes, 1600);
  EXPECT_NEAR(answer.collective_inputs->pollux.network_seconds, 2.4e-6, 1e-12);
  EXPECT_EQ(answer.collective_inputs->pollux.network_seconds_per_worker, 0);
}

TEST(CollectiveComparisonTest, PaleoKnowsNoLatencyAndTheSlowestLinkAlone) {
  ComparisonDraft draft{.worker_counts = {2, 4}};
  draft.scenario.communication = AllReduceDraft{.latency_seconds = 1e-6,
                                                .workers_per_node = 2,
                                                .intra_node_bandwidth_bytes_per_second = 4e9,
                                                .intra_node_latency_seconds = 1e-6};
  const ComparisonAnswer answer = Compared(TwoGradients(), draft);
  const std::vector<double> two = StepsOf(answer.comparisons[0]);
  EXPECT_NEAR(two[2], 2000 + 2 * 2 * (1000 + 100), 0.01);
  EXPECT_NEAR(two[3], 2000 + 2 * 200, 0.01);
  EXPECT_NEAR(two[0], 1500 + 500 + 200, 0.01) << "200 ns each, inside the node";
  const std::vector<double> four = StepsOf(answer.comparisons[1]);
  EXPECT_NEAR(four[2], 2000 + 2 * 6 * (1000 + 200), 0.01);
  EXPECT_NEAR(four[3], 2000 + 2 * 1200, 0.01);
}

TEST(CollectiveComparisonTest, CoarseTensorsGoThroughTheRecordedStepsOnce) {
  // The last gradient is ready after 2000 or 5000 ns; the first is through by 2300.
  const ModelComparison comparison =
      Compared(TwoGradients({500, 3500}), {.worker_counts = {2}}).comparisons[0];
  EXPECT_NEAR(StepsOf(comparison)[0], (3100 + 5800) / 2.0, 0.01);
}

TEST(CollectiveComparisonTest, WithoutCountsThoseOfOneToEightThatMeetAreCompared) {
  const auto counts = [](const AllReduceDraft& job) {
    ComparisonDraft draft{};
    draft.scenario.communication = job;
    std::vector<int32_t> workers;
    for (const ModelComparison& comparison : Compared(TwoGradients(), draft).comparisons)
      workers.push_back(comparison.prediction.scenario.workers);
    return workers;
  };
  EXPECT_THAT(counts({}), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(counts({.workers_per_node = 3, .intra_node_bandwidth_bytes_per_second = 1e9}),
              ElementsAre(1, 2, 3, 6));
  EXPECT_THAT(counts({.algorithm = CollectiveAlgorithm::kHalvingDoubling}),
              ElementsAre(1, 2, 4, 8));
}

TEST(CollectiveComparisonTest, CountsThatDoNotMeetAreNamed) {
  ComparisonDraft draft{.worker_counts = {2, 5}};
  draft.scenario.communication =
      AllReduceDraft{.workers_per_node = 4, .intra_node_bandwidth_bytes_per_second = 1e9};
  const absl::Status status = ResolveComparison(TwoGradients(), draft).status();
  ASSERT_EQ(DetailsOf(status).faults.size(), 1U) << status;
  EXPECT_EQ(DetailsOf(status).faults[0].field, "worker_counts[1]");
}

TEST(PolluxFormulaTest, TheExponentSaysHowMuchOverlaps) {
  PolluxFormula formula{.network_seconds = 2, .network_seconds_per_worker = 1, .exponent = 1};
  EXPECT_DOUBLE_EQ(formula.StepSeconds(3, 1), 3);
  EXPECT_DOUBLE_EQ(formula.StepSeconds(3, 2), 5);
  EXPECT_DOUBLE_EQ(formula.StepSeconds(3, 4), 7);
  formula.exponent = 2;
  EXPECT_DOUBLE_EQ(formula.StepSeconds(3, 4), 5);
  formula.exponent = 10;
  EXPECT_NEAR(formula.StepSeconds(3e-200, 4), 4, 1e-12) << "no power is out of range";
  EXPECT_EQ((PolluxFormula{.exponent = 10}.StepSeconds(0, 4)), 0);
}

TEST(PolluxFormulaTest, TheFitFindsWhatMadeTheSteps) {
  const PolluxFormula truth{
      .network_seconds = 0.05, .network_seconds_per_worker = 0.004, .exponent = 2.37};
  std::vector<CollectiveStep> steps;
  for (const int32_t workers : {1, 2, 4, 8, 16, 64}) {
    steps.push_back({.workers = workers,
                     .computation = 0.1,
                     .collectives = workers < 2 ? 0 : 0.05 + 0.004 * (workers - 2),
                     .simulated = truth.StepSeconds(0.1, workers)});
  }
  const PolluxFormula fitted = FitPollux(steps);
  EXPECT_NEAR(fitted.network_seconds, 0.05, 1e-9);
  EXPECT_NEAR(fitted.network_seconds_per_worker, 0.004, 1e-10);
  EXPECT_NEAR(fitted.exponent, 2.37, 1e-9);
}

TEST(PolluxFormulaTest, NothingIsBelowZero) {
  // Collectives that take less with more workers; that take nothing; one worker alone.
  const PolluxFormula falling = FitPollux({{.workers = 2, .collectives = 2, .simulated = 2},
                                           {.workers = 4, .collectives = 1, .simulated = 1}});
  EXPECT_EQ(falling.network_seconds_per_worker, 0);
  EXPECT_EQ(falling.network_seconds, 1.5);
  const PolluxFormula steep =
      FitPollux({{.workers = 3, .computation = 1, .collectives = 0.1, .simulated = 1},
                 {.workers = 9, .computation = 1, .collectives = 10, .simulated = 10}});
  EXPECT_EQ(steep.network_seconds, 0);
  EXPECT_GT(steep.network_seconds_per_worker, 0);
  const PolluxFormula alone = FitPollux({{.workers = 1, .computation = 1, .simulated = 1}});
  EXPECT_EQ(alone.StepSeconds(1, 1), 1);
}

}  // namespace
}  // namespace stepcast::synchronous_models_test
