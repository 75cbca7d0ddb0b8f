#include "core/compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/core/engine/job_builder.h"

namespace stepcast::comparison_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::JobBuilder;

Profile Chain() {
  JobBuilder job;
  job.Update(300, {job.Upload(700, {job.Compute(500, {job.Download(1000)})})});
  return job.Build();
}

ComparisonAnswer Compared(const Profile& profile, const ComparisonDraft& draft) {
  const absl::StatusOr<ComparisonQuery> query = ResolveComparison(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  absl::StatusOr<ComparisonAnswer> answer = CompareModels(profile, *query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? *std::move(answer) : ComparisonAnswer{};
}

TEST(ComparisonTest, EveryModelIsBesideOursInOrder) {
  const ComparisonAnswer answer =
      Compared(Chain(), {.worker_counts = {3, 1}, .options = {.steps_per_worker = 200}});
  ASSERT_EQ(answer.comparisons.size(), 2U);
  EXPECT_EQ(answer.comparisons[0].prediction.scenario.workers, 3);
  EXPECT_EQ(answer.comparisons[1].prediction.scenario.workers, 1);
  for (const ModelComparison& comparison : answer.comparisons) {
    std::vector<ComparedModel> models;
    for (const ComparedPrediction& rival : comparison.rivals) {
      models.push_back(rival.model);
      const double ours = comparison.prediction.examples_per_second;
      EXPECT_DOUBLE_EQ(rival.relative_difference, (rival.examples_per_second - ours) / ours);
      EXPECT_EQ(rival.unavailable_reason, "");
    }
    EXPECT_THAT(models, ElementsAre(ComparedModel::kQueueing, ComparedModel::kCynthia,
                                    ComparedModel::kCynthiaHalved, ComparedModel::kCoarseTensors));
  }
}

// Nothing overlaps in a chain, so the phases are the whole truth of one worker. Cynthia does not
// know updates.
TEST(ComparisonTest, OneWorkerOnAChainIsTheSameToTheModelsThatKnowItsPhases) {
  const ModelComparison comparison =
      Compared(Chain(), {.worker_counts = {1}, .options = {.steps_per_worker = 200}})
          .comparisons[0];
  EXPECT_DOUBLE_EQ(comparison.prediction.steps_per_second, 1e9 / 2500);
  EXPECT_DOUBLE_EQ(comparison.rivals[0].steps_per_second, 1e9 / 2500);
  EXPECT_DOUBLE_EQ(comparison.rivals[1].steps_per_second, 1e9 / 2200);
  EXPECT_DOUBLE_EQ(comparison.rivals[2].steps_per_second, 1e9 / 1350);
  EXPECT_DOUBLE_EQ(comparison.rivals[3].steps_per_second, 1e9 / 2500);
  EXPECT_FALSE(comparison.rivals[1].within_interval);
}

TEST(ComparisonTest, WithoutCountsOneToEightAreCompared) {
  const ComparisonAnswer answer = Compared(Chain(), {.options = {.steps_per_worker = 100}});
  ASSERT_EQ(answer.comparisons.size(), 8U);
  EXPECT_EQ(answer.comparisons.back().prediction.scenario.workers, 8);
}

TEST(ComparisonTest, OursAreThoseOfAPrediction) {
  const ThroughputDraft draft{
      .worker_counts = {2, 5}, .scenario = ScenarioDraft{}, .options = {.steps_per_worker = 150}};
  const auto predicted = PredictThroughput(Chain(), *ResolveThroughput(Chain(), draft), NeverStop);
  const ComparisonAnswer answer =
      Compared(Chain(), {.worker_counts = {2, 5}, .options = {.steps_per_worker = 150}});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(answer.comparisons[i].prediction.examples_per_second,
              predicted->predictions[i].examples_per_second);
  }
}

TEST(ComparisonTest, SynchronousTrainingIsBeyondTheModelsOfAsynchronousTraining) {
  const ComparisonDraft draft{
      .worker_counts = {2},
      .scenario = {.communication =
                       ParameterServersDraft{.synchronization = Synchronization::kSynchronous}},
      .options = {.steps_per_worker = 100}};
  const std::vector<ComparedPrediction> rivals = Compared(Chain(), draft).comparisons[0].rivals;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rivals[i].unavailable_reason, "the model is of asynchronous training");
    EXPECT_EQ(rivals[i].examples_per_second, 0);
  }
  EXPECT_EQ(rivals[3].unavailable_reason, "");
}

TEST(ComparisonTest, TheQueueingModelKnowsOneServerOnly) {
  JobBuilder job;
  job.Compute(500, {job.Download(1000, {}, 0), job.Download(1000, {}, 1)});
  const std::vector<ComparedPrediction> rivals =
      Compared(job.Build(), {.worker_counts = {2}, .options = {.steps_per_worker = 100}})
          .comparisons[0]
          .rivals;
  EXPECT_EQ(rivals[0].unavailable_reason, "the model is of one parameter server, not of 2");
  EXPECT_EQ(rivals[1].unavailable_reason, "");
}

TEST(ComparisonTest, WhatFixesTheNumberOfWorkersIsAFault) {
  const ComparisonDraft draft{
      .worker_counts = {2, 0},
      .scenario = {.workers = 3, .start_offsets_ns = {0, 0}, .worker_groups = {{.count = 2}}},
      .options = {.replications = 0}};
  const absl::Status status = ResolveComparison(Chain(), draft).status();
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
  EXPECT_THAT(fields,
              ElementsAre("scenario.workers", "scenario.start_offsets_ns", "scenario.worker_groups",
                          "options.replications", "worker_counts[1]"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("worker_counts say what to compare at"));
}

TEST(ComparisonTest, StopsWhenTold) {
  const ComparisonQuery query = *ResolveComparison(Chain(), {});
  EXPECT_TRUE(absl::IsCancelled(
      CompareModels(Chain(), query, [] { return absl::CancelledError("stop"); }).status()));
}

}  // namespace
}  // namespace stepcast::comparison_test
