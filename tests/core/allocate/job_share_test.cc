#include "core/allocate/job_share.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/core/engine/job_builder.h"

namespace stepcast::job_share_test {
namespace {

using testing::JobBuilder;

// One worker makes 10 examples a second, two make 18.
AllocationJob TwoCounts() {
  JobBuilder builder;
  builder.Compute(500);
  const Profile profile = builder.Build();
  const Scenario scenario = testing::Resolved(profile);
  return {.profile = profile,
          .one_worker = scenario,
          .server_choices = {scenario},
          .worker_counts = {1, 2}};
}

std::vector<JobShare> Shares(const AllocationJob& job) {
  ThroughputCurve curve;
  curve.Add({.workers = 1, .servers = 1, .examples_per_second = 10});
  curve.Add({.workers = 2, .servers = 1, .examples_per_second = 18});
  return SharesOf(job, curve, 10);
}

TEST(JobShareTest, UtilityIsWeightTimesSpeedup) {
  AllocationJob job = TwoCounts();
  job.weight = 3;
  const std::vector<JobShare> shares = Shares(job);
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_DOUBLE_EQ(shares[1].speedup, 1.8);
  EXPECT_DOUBLE_EQ(shares[1].utility, 5.4);
  EXPECT_DOUBLE_EQ(MeritOf(shares[1], job, AllocationObjective::kTotalUtility), 5.4);
  EXPECT_DOUBLE_EQ(MeritOf(shares[1], job, AllocationObjective::kMaxMinFair), 0.6);
  EXPECT_FALSE(shares[1].duration_seconds.has_value());
}

TEST(JobShareTest, AJobThatRestsHasNothingAndNeverEnds) {
  AllocationJob job = TwoCounts();
  job.may_rest = true;
  job.remaining_examples = 900;
  const JobShare share = Shares(job).front();
  EXPECT_EQ(share.workers, 0);
  EXPECT_EQ(share.servers, 0);
  EXPECT_EQ(share.utility, 0);
  EXPECT_EQ(MeritOf(share, job, AllocationObjective::kMinMakespan),
            -std::numeric_limits<double>::infinity());
}

// 900 examples take 50 s with two workers; 10 s of rescaling make them 60.
TEST(JobShareTest, ARescaleIsSpreadOverTheRestOfTheJob) {
  AllocationJob job = TwoCounts();
  job.remaining_examples = 900;
  job.current_workers = 1;
  job.current_servers = 1;
  job.rescale_seconds = 10;
  const std::vector<JobShare> shares = Shares(job);
  EXPECT_DOUBLE_EQ(*shares[0].duration_seconds, 90);
  EXPECT_DOUBLE_EQ(shares[0].speedup, 1);
  EXPECT_DOUBLE_EQ(*shares[1].duration_seconds, 60);
  EXPECT_DOUBLE_EQ(shares[1].speedup, 1.5);
  EXPECT_DOUBLE_EQ(shares[1].examples_per_second, 18);
  EXPECT_DOUBLE_EQ(MeritOf(shares[1], job, AllocationObjective::kMinMakespan), -60);
}

TEST(JobShareTest, AnotherNumberOfServersIsARescaleToo) {
  AllocationJob job = TwoCounts();
  job.remaining_examples = 900;
  job.current_workers = 2;
  job.current_servers = 2;
  job.rescale_seconds = 10;
  EXPECT_DOUBLE_EQ(*Shares(job)[1].duration_seconds, 60);
}

TEST(JobShareTest, AJobThatDoesNotRunYetHasNoRescale) {
  AllocationJob job = TwoCounts();
  job.remaining_examples = 900;
  job.rescale_seconds = 10;
  EXPECT_DOUBLE_EQ(*Shares(job)[1].duration_seconds, 50);
}

}  // namespace
}  // namespace stepcast::job_share_test
