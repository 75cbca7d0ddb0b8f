#include "core/compare/coarse_profile.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "core/base/stop_check.h"
#include "core/compare/recorded_run.h"
#include "core/predict/replications.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::coarse_profile_test {
namespace {

using testing::JobBuilder;

CoarseProfile Measured(const Profile& profile, const ScenarioDraft& draft = {}) {
  const absl::StatusOr<CoarseProfile> coarse =
      MeasureCoarseProfile(profile, testing::Resolved(profile, draft), NeverStop);
  EXPECT_TRUE(coarse.ok()) << coarse.status();
  return coarse.value_or(CoarseProfile{});
}

TEST(CoarseProfileTest, AChainsPhasesAreItsOperations) {
  JobBuilder job;
  job.Update(30, {job.Upload(700, {job.Compute(500, {job.Download(1000)})})});
  const CoarseProfile coarse = Measured(job.Build());
  EXPECT_DOUBLE_EQ(coarse.phases.downlink, 1000e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.worker, 500e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.uplink, 700e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.parameter_server, 30e-9);
  EXPECT_DOUBLE_EQ(coarse.cynthia.computation_seconds, 500e-9);
  EXPECT_DOUBLE_EQ(coarse.cynthia.transfer_seconds, 850e-9);
  EXPECT_EQ(coarse.cynthia.busiest_server_share, 1);
}

// Downloads of 100 and 400; computations of 250 after each: the first runs from 100 to 350, the
// second from 500 to 750. Its upload of 10 starts at 350.
TEST(CoarseProfileTest, AnUploadDuringTheDownloadsCountsFromTheirEnd) {
  JobBuilder job;
  const int32_t first = job.Download(100);
  const int32_t second = job.Download(400);
  job.Upload(10, {job.Compute(250, {first})});
  job.Upload(50, {job.Compute(250, {second})});
  const CoarseProfile coarse = Measured(job.Build());
  EXPECT_DOUBLE_EQ(coarse.phases.downlink, 500e-9);
  EXPECT_EQ(coarse.phases.worker, 0);
  EXPECT_DOUBLE_EQ(coarse.phases.uplink, 300e-9);  // gaps and all: from 500 to 800
  EXPECT_EQ(coarse.phases.parameter_server, 0);
  EXPECT_DOUBLE_EQ(coarse.cynthia.computation_seconds, 500e-9);
}

TEST(CoarseProfileTest, WithoutUploadsTheWorkerComputesToTheEnd) {
  JobBuilder job;
  job.Compute(500, {job.Download(1000)});
  const CoarseProfile coarse = Measured(job.Build());
  EXPECT_DOUBLE_EQ(coarse.phases.worker, 500e-9);
  EXPECT_EQ(coarse.phases.uplink, 0);
}

TEST(CoarseProfileTest, PhasesAreMeansOverTheRecordedSteps) {
  JobBuilder job;
  job.Upload(700, {job.Compute({500, 900, 2100}, {job.Download(1000)})});
  const CoarseProfile coarse = Measured(job.Build());
  EXPECT_DOUBLE_EQ(coarse.phases.downlink, 1000e-9);
  EXPECT_NEAR(coarse.phases.worker, 3500e-9 / 3, 1e-15);
  EXPECT_NEAR(coarse.cynthia.computation_seconds, 3500e-9 / 3, 1e-15);
}

TEST(CoarseProfileTest, TheScenariosBandwidthAndParsingCount) {
  JobBuilder job;
  job.Upload(700, {job.Compute(500, {job.Download(1000)})});
  const CoarseProfile coarse =
      Measured(job.Build(), {.bandwidth_bytes_per_second = 2e9,
                             .communication = ParameterServersDraft{
                                 .parsing_overhead = ParsingOverhead{.seconds = 100e-9}}});
  EXPECT_DOUBLE_EQ(coarse.phases.downlink, 500e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.worker, 600e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.uplink, 350e-9);
  EXPECT_DOUBLE_EQ(coarse.phases.parameter_server, 100e-9);
  EXPECT_DOUBLE_EQ(coarse.cynthia.computation_seconds, 600e-9);
  EXPECT_DOUBLE_EQ(coarse.cynthia.transfer_seconds, 425e-9);
}

TEST(CoarseProfileTest, OfTwoServersTheOneWithMoreBytesIsTheBusiest) {
  JobBuilder job;
  const int32_t compute = job.Compute(500, {job.Download(100, {}, 0), job.Download(300, {}, 1)});
  job.Upload(100, {compute}, 0);
  job.Upload(300, {compute}, 1);
  EXPECT_DOUBLE_EQ(Measured(job.Build()).cynthia.busiest_server_share, 0.75);
}

TEST(CoarseProfileTest, ThePhasesOfAnyJobAddUpToItsSteps) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Profile profile = testing::MakeRandomCase(seed).profile;
    const Scenario scenario = testing::Resolved(profile);
    const auto ranked = RankedGraph::Make(profile, scenario, NeverStop);
    const absl::StatusOr<RecordedRun> run =
        RunRecordedSteps(profile, scenario, **ranked, nullptr, NeverStop);
    ASSERT_TRUE(run.ok()) << run.status();
    const CoarseProfile coarse = Measured(profile);
    const double expected = ToSeconds(run->length) / static_cast<double>(profile.steps().size());
    EXPECT_NEAR(coarse.phases.Sum(), expected, expected * 1e-9);
    for (const double phase : {coarse.phases.downlink, coarse.phases.worker, coarse.phases.uplink,
                               coarse.phases.parameter_server}) {
      EXPECT_GE(phase, 0);
    }
  }
}

}  // namespace
}  // namespace stepcast::coarse_profile_test
