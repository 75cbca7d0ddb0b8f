#include "core/allocate/allocation_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/core/engine/job_builder.h"

namespace stepcast::allocation_query_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

Profile SmallJob() {
  JobBuilder job;
  job.Upload(700, {job.Compute(500, {job.Download(1000, {}, 0, "v")})}, 0, "v");
  return job.Build();
}

AllocationJob Resolved(const AllocationJobDraft& draft,
                       const ClusterCapacity& capacity = {.workers = 100}) {
  absl::StatusOr<AllocationJob> job =
      ResolveAllocationJob(SmallJob(), draft, capacity, AllocationObjective::kTotalUtility);
  if (!job.ok()) throw std::logic_error(job.status().ToString());
  return *std::move(job);
}

std::vector<std::string> FaultyJobFields(
    const AllocationJobDraft& draft,
    AllocationObjective objective = AllocationObjective::kTotalUtility) {
  const absl::Status status =
      ResolveAllocationJob(SmallJob(), draft, {.workers = 100}, objective).status();
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
  EXPECT_EQ(fields.empty(), status.ok());
  EXPECT_EQ(DetailsOf(status).reason, status.ok() ? "" : "JOB_INVALID");
  return fields;
}

TEST(AllocationJobTest, ByDefaultAJobGetsOneToSixteenWorkers) {
  const AllocationJob job = Resolved({});
  EXPECT_THAT(job.worker_counts, SizeIs(16));
  EXPECT_EQ(job.worker_counts.front(), 1);
  EXPECT_EQ(job.worker_counts.back(), 16);
  EXPECT_FALSE(job.may_rest);
  EXPECT_THAT(job.server_choices, SizeIs(1));
}

TEST(AllocationJobTest, WorkersDivideASharedBatch) {
  const auto resolved = [](const AllocationJobDraft& draft) {
    return ResolveAllocationJob(
        SmallJob(), draft, {.workers = 100}, AllocationObjective::kTotalUtility,
        SharedBatch::Of(SmallJob(), {.global_batch_size = 12}, nullptr, {}).value());
  };
  EXPECT_THAT(resolved({})->worker_counts, ElementsAre(1, 2, 3, 4, 6, 12));
  EXPECT_THAT(resolved({.gang = 2})->worker_counts, ElementsAre(2, 4, 6, 12));
  EXPECT_TRUE(resolved({})->shared.has_value());
  const absl::Status none = resolved({.min_workers = 7, .max_workers = 11}).status();
  EXPECT_EQ(DetailsOf(none).faults.front().field, "min_workers");
  EXPECT_THAT(DetailsOf(none).faults.front().description,
              HasSubstr("divides the global batch of 12 examples"));
}

TEST(AllocationJobTest, WorkersComeInMultiplesOfTheGang) {
  EXPECT_THAT(Resolved({.min_workers = 3, .max_workers = 17, .gang = 4}).worker_counts,
              ElementsAre(4, 8, 12, 16));
  EXPECT_THAT(Resolved({.max_workers = 24, .gang = 8}).worker_counts, ElementsAre(8, 16, 24));
}

TEST(AllocationJobTest, AMinimumOfNoneMeansThatTheJobMayRest) {
  const AllocationJob job = Resolved({.min_workers = 0, .max_workers = 2});
  EXPECT_TRUE(job.may_rest);
  EXPECT_THAT(job.worker_counts, ElementsAre(1, 2));
}

TEST(AllocationJobTest, NothingAboveTheCapacityAndOneMoreIsLookedAt) {
  EXPECT_THAT(Resolved({.max_workers = 100}, {.workers = 3}).worker_counts,
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Resolved({.min_workers = 6, .max_workers = 9}, {.workers = 3}).worker_counts,
              ElementsAre(6));
  EXPECT_THAT(Resolved({.min_workers = 6}, {.workers = 3}).worker_counts, ElementsAre(6));
}

TEST(AllocationJobTest, ServersAreTriedUpToTheMost) {
  EXPECT_THAT(Resolved({.max_parameter_servers = 3}).server_choices, SizeIs(3));
  EXPECT_THAT(Resolved({.max_parameter_servers = 3}, {.workers = 9, .servers = 2}).server_choices,
              SizeIs(2));
}

TEST(AllocationJobTest, EveryFaultIsNamed) {
  EXPECT_THAT(FaultyJobFields({.scenario = {.workers = 3, .bandwidth_bytes_per_second = -1},
                               .weight = 0,
                               .min_workers = -1,
                               .gang = 0,
                               .max_parameter_servers = 17,
                               .remaining_examples = 0,
                               .current =
                                   AllocationJobDraft::Current{
                                       .workers = 0, .rescale_seconds = -1, .servers = 0}}),
              UnorderedElementsAre("scenario.workers", "scenario.bandwidth_bytes_per_second",
                                   "weight", "min_workers", "gang", "max_parameter_servers",
                                   "remaining_examples", "current.workers",
                                   "current.parameter_servers", "current.rescale_seconds"));
}

TEST(AllocationJobTest, BoundsThatLeaveNothingAreFaults) {
  EXPECT_THAT(FaultyJobFields({.min_workers = 5, .max_workers = 4}), ElementsAre("max_workers"));
  EXPECT_THAT(FaultyJobFields({.min_workers = 0, .max_workers = 0}), ElementsAre("max_workers"));
  EXPECT_THAT(FaultyJobFields({.min_workers = 5, .max_workers = 7, .gang = 8}),
              ElementsAre("gang"));
  EXPECT_THAT(FaultyJobFields({.max_workers = 5000}), ElementsAre("max_workers"));
}

TEST(AllocationJobTest, WhatNeedsTheRemainingExamplesSaysSo) {
  EXPECT_THAT(FaultyJobFields({}, AllocationObjective::kMinMakespan),
              ElementsAre("remaining_examples"));
  EXPECT_THAT(
      FaultyJobFields({.current = AllocationJobDraft::Current{.workers = 1, .rescale_seconds = 3}}),
      ElementsAre("remaining_examples"));
  EXPECT_THAT(FaultyJobFields({.current = AllocationJobDraft::Current{.workers = 1}}), IsEmpty());
}

std::vector<std::string> FaultyFields(const AllocationDraft& draft) {
  std::vector<std::string> fields;
  const absl::Status status = ResolveAllocation(draft).status();
  EXPECT_EQ(DetailsOf(status).reason, "REQUEST_INVALID");
  for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
  return fields;
}

TEST(AllocationQueryTest, TakesWhatIsSound) {
  const absl::StatusOr<AllocationQuery> query = ResolveAllocation(
      {.job_ids = {"a", "b"}, .capacity = ClusterCapacity{.workers = 65'536, .servers = 1}});
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->capacity.workers, 65'536);
  EXPECT_EQ(query->objective, AllocationObjective::kTotalUtility);
}

TEST(AllocationQueryTest, EveryFaultIsNamed) {
  EXPECT_THAT(FaultyFields({}), ElementsAre("jobs", "capacity"));
  EXPECT_THAT(FaultyFields({.job_ids = {"a", "", std::string(129, 'x'), "a"},
                            .capacity = ClusterCapacity{.workers = 0, .servers = 4097},
                            .options = {.replications = 0}}),
              ElementsAre("jobs[1].id", "jobs[2].id", "jobs[3].id", "capacity.workers",
                          "capacity.parameter_servers", "options.replications"));
  EXPECT_THAT(FaultyFields({.job_ids = std::vector<std::string>(257, "a"),
                            .capacity = ClusterCapacity{.workers = 1}}),
              ElementsAre("jobs"));
}

}  // namespace
}  // namespace stepcast::allocation_query_test
