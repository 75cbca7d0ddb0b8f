#include "core/allocate/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/core/engine/job_builder.h"

namespace stepcast::allocation_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::JobBuilder;
using ::testing::SizeIs;

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

// Scales with any number of workers: `ns` of computation a step and no transfer.
Profile Computing(int64_t ns) {
  JobBuilder job;
  job.Compute(ns);
  return job.Build();
}

// One worker has the link for itself almost all the time: a second one is of little use.
Profile LinkBound() {
  JobBuilder job;
  job.Compute(100, {job.Download(10'000)});
  return job.Build();
}

struct Asked {
  Profile profile;
  AllocationJobDraft draft;
};

AllocationQuery Query(const std::vector<Asked>& jobs, const ClusterCapacity& capacity,
                      AllocationObjective objective = AllocationObjective::kTotalUtility) {
  AllocationQuery query{.capacity = capacity, .objective = objective};
  query.options = *ResolveOptions({.steps_per_worker = 60, .replications = 1});
  for (const Asked& job : jobs)
    query.jobs.push_back(ResolveAllocationJob(job.profile, job.draft, capacity, objective));
  return query;
}

AllocationAnswer Allocated(const AllocationQuery& query) {
  const absl::StatusOr<AllocationAnswer> answer = AllocateWorkers(query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.value_or(AllocationAnswer{});
}

std::vector<int32_t> WorkersOf(const AllocationAnswer& answer) {
  std::vector<int32_t> workers;
  for (const JobAllocation& job : answer.jobs) workers.push_back(job.share.workers);
  return workers;
}

TEST(AllocateWorkersTest, WhatWeakensACurveIsSaidOfItsJob) {
  AllocationQuery query = Query({{LinkBound(), {}}, {Computing(1000), {}}}, {.workers = 4});
  // Of a beginning, every prediction warns.
  query.options = *ResolveOptions({.horizon = Horizon::kFirstSteps, .horizon_steps = 10});
  const AllocationAnswer answer = Allocated(query);
  for (const JobAllocation& job : answer.jobs) {
    ASSERT_THAT(job.warnings, SizeIs(::testing::Gt(0u)));
    EXPECT_THAT(job.warnings[0].message, HasSubstr("worker"));
  }
}

TEST(AllocationTest, WorkersGoWhereTheyAreOfUse) {
  const AllocationAnswer answer =
      Allocated(Query({{LinkBound(), {}}, {Computing(1000), {}}}, {.workers = 6}));
  EXPECT_THAT(WorkersOf(answer), ElementsAre(1, 5));
  EXPECT_NEAR(answer.total_utility, 6, 1e-6);
  EXPECT_EQ(answer.objective_value, answer.total_utility);
  EXPECT_EQ(answer.workers, 6);
  EXPECT_EQ(answer.servers, 2);
  EXPECT_NEAR(answer.jobs[1].share.examples_per_second, 5e6, 1);
  EXPECT_THAT(answer.jobs[1].curve, SizeIs(7));
}

// Hardly anything is random here, and the split is exact.
TEST(AllocationTest, NoExchangeIsBetterThanAnExactSplit) {
  const std::vector<Asked> jobs = {{LinkBound(), {}}, {Computing(1000), {}}};
  const AllocationAnswer answer = Allocated(Query(jobs, {.workers = 6}));
  ASSERT_TRUE(answer.settled.has_value());
  EXPECT_EQ(answer.settled->probability_best, 1);
  EXPECT_LT(answer.settled->expected_loss, 1e-9);
  EXPECT_FALSE(
      Allocated(Query(jobs, {.workers = 6}, AllocationObjective::kMaxMinFair)).settled.has_value());
}

// The second job would be worth more than the first one's second worker, but has no server.
TEST(AllocationTest, AnExchangeThatNeedsAServerMoreIsNone) {
  const AllocationAnswer answer = Allocated(Query(
      {{Computing(1000), {.min_workers = 0}}, {LinkBound(), {.weight = 1.5, .min_workers = 0}}},
      {.workers = 2, .servers = 1}));
  EXPECT_THAT(WorkersOf(answer), ElementsAre(2, 0));
  ASSERT_TRUE(answer.settled.has_value());
  EXPECT_EQ(answer.settled->probability_best, 1);
}

TEST(AllocationTest, OneMoreWorkerGoesToWhomItHelpsMost) {
  const OneMoreWorker more =
      Allocated(Query({{LinkBound(), {}}, {Computing(1000), {}}}, {.workers = 6})).one_more_worker;
  EXPECT_NEAR(more.utility_gain, 1, 1e-6);
  ASSERT_THAT(more.changes, SizeIs(1));
  EXPECT_EQ(more.changes[0].job, 1U);
  EXPECT_EQ(more.changes[0].workers, 6);
}

TEST(AllocationTest, OneMoreWorkerIsOfNoUseToAFullGang) {
  const OneMoreWorker more =
      Allocated(Query({{Computing(1000), {.max_workers = 8, .gang = 4}}}, {.workers = 4}))
          .one_more_worker;
  EXPECT_EQ(more.utility_gain, 0);
  EXPECT_THAT(more.changes, IsEmpty());
}

TEST(AllocationTest, WeightMovesWorkers) {
  const std::vector<Asked> jobs = {{Computing(1000), {.weight = 1}},
                                   {Computing(3000), {.weight = 2}}};
  EXPECT_THAT(WorkersOf(Allocated(Query(jobs, {.workers = 9}))), ElementsAre(1, 8));
  EXPECT_THAT(WorkersOf(Allocated(Query(jobs, {.workers = 9}, AllocationObjective::kMaxMinFair))),
              ElementsAre(3, 6));
}

// 6,000 and 3,000 examples at a million a second and worker: 2 to 1.
TEST(AllocationTest, TheShortestMakespanFollowsTheRemainingWork) {
  const std::vector<Asked> jobs = {{Computing(1000), {.remaining_examples = 6000}},
                                   {Computing(1000), {.remaining_examples = 3000}}};
  const AllocationAnswer answer =
      Allocated(Query(jobs, {.workers = 6}, AllocationObjective::kMinMakespan));
  EXPECT_THAT(WorkersOf(answer), ElementsAre(4, 2));
  EXPECT_NEAR(answer.objective_value, 1.5e-3, 1e-9);
}

TEST(AllocationTest, ARescaleThatCostsMoreThanItGivesIsNotMade) {
  AllocationJobDraft running{.remaining_examples = 1'000'000,
                             .current = AllocationJobDraft::Current{.workers = 2}};
  EXPECT_THAT(WorkersOf(Allocated(Query({{Computing(1000), running}}, {.workers = 3}))),
              ElementsAre(3));
  running.current->rescale_seconds = 1;  // the whole job takes half a second
  const AllocationAnswer answer = Allocated(Query({{Computing(1000), running}}, {.workers = 3}));
  EXPECT_THAT(WorkersOf(answer), ElementsAre(2));
  EXPECT_NEAR(*answer.jobs[0].share.duration_seconds, 0.5, 1e-6);
}

TEST(AllocationTest, ABadJobHasItsOwnErrorAndTheOthersAreServed) {
  const AllocationAnswer answer =
      Allocated(Query({{Computing(1000), {.weight = -1}}, {Computing(1000), {}}}, {.workers = 3}));
  EXPECT_EQ(DetailsOf(answer.jobs[0].status).reason, "JOB_INVALID");
  EXPECT_EQ(answer.jobs[0].share.workers, 0);
  EXPECT_TRUE(answer.jobs[1].status.ok());
  EXPECT_THAT(WorkersOf(answer), ElementsAre(0, 3));
}

TEST(AllocationTest, AJobWhoseSimulationFailsHasItsOwnErrorToo) {
  JobBuilder slow;  // more than a day a step
  slow.Download(100'000);
  const AllocationJobDraft draft{.scenario = {.bandwidth_bytes_per_second = 1}};
  const AllocationAnswer answer =
      Allocated(Query({{slow.Build(), draft}, {Computing(1000), {}}}, {.workers = 3}));
  EXPECT_EQ(DetailsOf(answer.jobs[0].status).reason, "SIMULATED_TIME_EXHAUSTED");
  EXPECT_THAT(WorkersOf(answer), ElementsAre(0, 3));
}

TEST(AllocationTest, WithBadJobsOnlyNothingIsShared) {
  const AllocationAnswer answer = Allocated(
      Query({{Computing(1000), {.gang = -1}}}, {.workers = 3}, AllocationObjective::kMaxMinFair));
  EXPECT_EQ(answer.total_utility, 0);
  EXPECT_THAT(answer.one_more_worker.changes, IsEmpty());
}

TEST(AllocationTest, ACapacityThatCannotHoldTheMinimumsIsNamedWithTheAmount) {
  const std::vector<Asked> jobs = {{Computing(1000), {.min_workers = 5, .gang = 4}},
                                   {Computing(1000), {.min_workers = 3}}};
  const AllocationAnswer answer = Allocated(Query(jobs, {.workers = 9, .servers = 1}));
  EXPECT_EQ(answer.infeasible_reason,
            "capacity.workers: the jobs' minimums need 11, which is 2 more than the 9 there are; "
            "capacity.parameter_servers: the jobs' minimums need 2, which is 1 more than the 1 "
            "there are");
  EXPECT_THAT(WorkersOf(answer), ElementsAre(0, 0));
}

TEST(AllocationTest, AJobThatMayRestGivesWay) {
  const std::vector<Asked> jobs = {{Computing(1000), {.weight = 0.5, .min_workers = 0}},
                                   {Computing(1000), {.min_workers = 3}}};
  EXPECT_THAT(WorkersOf(Allocated(Query(jobs, {.workers = 3}))), ElementsAre(0, 3));
}

TEST(AllocationTest, WhatItsOwnBoundsKeepFromMoreIsToldFromWhatTheClusterDoes) {
  const auto edges = [](const std::vector<Asked>& jobs, int32_t workers) {
    std::vector<ChoiceEdge> found;
    for (const JobAllocation& job : Allocated(Query(jobs, {.workers = workers})).jobs)
      found.push_back(job.workers_edge);
    return found;
  };
  const std::vector<Asked> jobs = {{Computing(1000), {.max_workers = 2}},
                                   {Computing(1000), {}},
                                   {Computing(1000), {.min_workers = 3, .max_workers = 3}}};
  EXPECT_THAT(edges(jobs, 9),
              ElementsAre(ChoiceEdge::kLargestAsked, ChoiceEdge::kNone, ChoiceEdge::kOnlyChoice));
  // Two a time of seven, of which six fit: the cluster's doing.
  EXPECT_THAT(edges({{Computing(1000), {.max_workers = 12, .gang = 2}}}, 7),
              ElementsAre(ChoiceEdge::kNone));
  EXPECT_THAT(edges({{Computing(1000), {.max_workers = 6, .gang = 2}}}, 7),
              ElementsAre(ChoiceEdge::kLargestAsked));
  EXPECT_THAT(edges({{Computing(1000), {.min_workers = 2}}, {LinkBound(), {.min_workers = 4}}}, 6),
              ElementsAre(ChoiceEdge::kSmallestAsked, ChoiceEdge::kSmallestAsked));
}

TEST(AllocationTest, MoreServersGoToTheJobThatTheyHelp) {
  JobBuilder job;
  job.Compute(100, {job.Download(10'000, {}, 0, "a"), job.Download(10'000, {}, 0, "b")});
  const AllocationJobDraft draft{.max_workers = 4, .max_parameter_servers = 2};
  const AllocationAnswer answer = Allocated(Query(
      {{job.Build(), draft}, {Computing(1000), {.max_workers = 1}}}, {.workers = 5, .servers = 3}));
  EXPECT_EQ(answer.jobs[0].share.servers, 2);
  EXPECT_EQ(answer.servers, 3);
  EXPECT_GT(answer.jobs[0].share.speedup, 1.5);
}

TEST(AllocationTest, TooManyPointsAreRefused) {
  AllocationQuery query = Query({{Computing(1000), {}}}, {.workers = 100});
  query.jobs.resize(kMaxAllocationPoints / 16, query.jobs[0]);
  const absl::Status status = AllocateWorkers(query, NeverStop).status();
  EXPECT_EQ(DetailsOf(status).reason, "ALLOCATION_TOO_LARGE");
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_allocation_points = 8192"));
}

// A server that is told to stop says UNAVAILABLE: the answer must not be one of jobs that failed.
TEST(AllocationTest, StopsWhenToldWhateverItIsTold) {
  const AllocationQuery query =
      Query({{Computing(1000), {}}, {Computing(1000), {}}}, {.workers = 3});
  for (const absl::Status& why : {absl::CancelledError("stop"), absl::UnavailableError("leaving"),
                                  absl::AbortedError("lost")}) {
    for (const int goes_on : {0, 1, 5}) {
      int asked = 0;
      const auto stop = [&] { return asked++ < goes_on ? absl::OkStatus() : why; };
      EXPECT_EQ(AllocateWorkers(query, stop).status(), why) << goes_on;
    }
  }
}

}  // namespace
}  // namespace stepcast::allocation_test
