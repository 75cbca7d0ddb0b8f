#include "core/compare/coarse_tensors.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/base/stop_check.h"
#include "tests/core/engine/job_builder.h"

namespace stepcast::coarse_tensors_test {
namespace {

using testing::JobBuilder;

double StepsPerSecond(const Profile& profile, int32_t workers, const ScenarioDraft& draft = {}) {
  const absl::StatusOr<CoarseTensorsAnswer> answer =
      PredictByCoarseTensors(profile, testing::Resolved(profile, draft), workers, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(CoarseTensorsAnswer{}).steps_per_second;
}

Profile Chain() {
  JobBuilder job;
  job.Upload(700, {job.Compute(500, {job.Download(1000)})});
  return job.Build();
}

TEST(CoarseTensorsTest, OneWorkerIsAsRecorded) {
  EXPECT_DOUBLE_EQ(StepsPerSecond(Chain(), 1), 1e9 / 2200);
}

TEST(CoarseTensorsTest, EachOfSeveralWorkersHasItsPartOfTheLink) {
  EXPECT_DOUBLE_EQ(StepsPerSecond(Chain(), 3), 3 * 1e9 / (500 + 3 * 1700));
}

// Never more than one worker's transfers allow; a chain sends and receives in turn, so it stays
// below the capacity of either direction.
TEST(CoarseTensorsTest, ManyWorkersSaturateTheLink) {
  EXPECT_NEAR(StepsPerSecond(Chain(), 4096), 1e9 / 1700, 1e9 / 1700 * 1e-3);
}

TEST(CoarseTensorsTest, TransfersOverlapWithComputation) {
  JobBuilder job;
  const int32_t first = job.Compute(1000, {job.Download(100)});
  job.Compute(50, {job.Download(800), first});
  EXPECT_DOUBLE_EQ(StepsPerSecond(job.Build(), 1), 1e9 / 1150);
}

TEST(CoarseTensorsTest, ParsingAndSwitchingAreNotModelled) {
  const ScenarioDraft draft{
      .communication = ParameterServersDraft{.parsing_overhead = ParsingOverhead{.seconds = 1e-6},
                                             .multiplexing = WindowDraft{.bytes = 10}}};
  EXPECT_DOUBLE_EQ(StepsPerSecond(Chain(), 2, draft), StepsPerSecond(Chain(), 2));
}

// Two servers' links carry half as much each; the worker's own link is 1e9 bytes per second, which
// four workers' parts of two links do not fill.
TEST(CoarseTensorsTest, OfSeveralServersEachGivesAPart) {
  JobBuilder job;
  job.Compute(500, {job.Download(1000, {}, 0), job.Download(1000, {}, 1)});
  EXPECT_DOUBLE_EQ(StepsPerSecond(job.Build(), 4), 4 * 1e9 / 4500);
}

}  // namespace
}  // namespace stepcast::coarse_tensors_test
