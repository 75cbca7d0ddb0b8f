#include "server/convert/allocation_convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"

namespace stepcast::server::allocation_convert_test {
namespace {

using ::testing::ElementsAre;

TEST(AllocationConvertTest, AJobCarriesEverything) {
  v1::AllocateWorkersRequest wire;
  v1::AllocationJob& job = *wire.add_jobs();
  job.set_id("a");
  job.set_profile("profiles/p");
  job.mutable_scenario()->mutable_parameter_servers()->set_servers(2);
  job.set_weight(0.5);
  job.set_min_workers(0);
  job.set_max_workers(9);
  job.set_gang(3);
  job.set_max_parameter_servers(4);
  job.set_remaining_examples(1000);
  job.mutable_current()->set_workers(6);
  job.mutable_current()->set_rescale_seconds(7);
  job.mutable_current()->set_parameter_servers(3);
  wire.mutable_capacity()->set_workers(12);
  wire.mutable_capacity()->set_parameter_servers(5);
  wire.set_objective(v1::AllocateWorkersRequest::MIN_MAKESPAN);
  wire.mutable_options()->set_seed(8);
  const AllocateWorkersCall call = FromWire(wire);
  EXPECT_THAT(call.draft.job_ids, ElementsAre("a"));
  EXPECT_EQ(call.draft.capacity->workers, 12);
  EXPECT_EQ(call.draft.capacity->servers, 5);
  EXPECT_EQ(call.draft.objective, AllocationObjective::kMinMakespan);
  EXPECT_EQ(call.draft.options.seed, 8U);
  ASSERT_EQ(call.jobs.size(), 1U);
  EXPECT_EQ(std::get<std::string>(call.jobs[0].source), "profiles/p");
  const AllocationJobDraft& draft = call.jobs[0].draft;
  EXPECT_EQ(draft.scenario.servers().servers, 2);
  EXPECT_EQ(draft.weight, 0.5);
  EXPECT_EQ(draft.min_workers, 0);
  EXPECT_EQ(draft.max_workers, 9);
  EXPECT_EQ(draft.gang, 3);
  EXPECT_EQ(draft.max_parameter_servers, 4);
  EXPECT_EQ(draft.remaining_examples, 1000);
  EXPECT_EQ(draft.current->workers, 6);
  EXPECT_EQ(draft.current->rescale_seconds, 7);
  EXPECT_EQ(draft.current->servers, 3);
}

TEST(AllocationConvertTest, WhatIsUnsetStaysUnset) {
  v1::AllocateWorkersRequest wire;
  wire.add_jobs();
  const AllocateWorkersCall call = FromWire(wire);
  EXPECT_FALSE(call.draft.capacity.has_value());
  EXPECT_EQ(call.draft.objective, AllocationObjective::kTotalUtility);
  const AllocationJobDraft& draft = call.jobs[0].draft;
  EXPECT_FALSE(draft.weight || draft.min_workers || draft.max_workers || draft.gang ||
               draft.max_parameter_servers || draft.remaining_examples || draft.current);
}

TEST(AllocationConvertTest, AnUnknownNumberIsAFaultOfItsJobOnly) {
  v1::AllocateWorkersRequest wire;
  wire.add_jobs()->mutable_scenario()->mutable_parameter_servers()->set_synchronization(
      static_cast<v1::ParameterServers::Synchronization>(77));
  wire.add_jobs();
  const AllocateWorkersCall call = FromWire(wire);
  ASSERT_EQ(call.jobs[0].faults.size(), 1U);
  EXPECT_EQ(call.jobs[0].faults[0].field, "scenario.parameter_servers.synchronization");
  EXPECT_TRUE(call.jobs[1].faults.empty() && call.faults.empty());
}

TEST(AllocationConvertTest, AnAllocationCarriesEverything) {
  AllocateWorkersAnswer answer{.context = {.options = {.seed = 42}},
                               .job_ids = {"a", "b"},
                               .profile_digests = {"digest", ""}};
  JobAllocation served{.share = {.workers = 3,
                                 .servers = 2,
                                 .examples_per_second = 30,
                                 .interpolated = true,
                                 .speedup = 2.5,
                                 .utility = 5,
                                 .duration_seconds = 1.5}};
  served.curve = {{.workers = 3,
                   .servers = 2,
                   .examples_per_second = 30,
                   .confidence_interval = {.lower = 29, .upper = 31, .level = 0.9}}};
  served.warnings = {{.reason = Warning::Reason::kNotSteady, .message = "3 workers: it drifts"}};
  const JobAllocation bad{
      .status = FaultsError("JOB_INVALID", {{.field = "weight", .description = "is -1"}})};
  answer.answer = {.jobs = {served, bad},
                   .total_utility = 5,
                   .objective_value = 6,
                   .workers = 3,
                   .servers = 2,
                   .one_more_worker = {.utility_gain = 0.5,
                                       .objective_gain = 0.25,
                                       .changes = {{.job = 1, .workers = 4, .servers = 1}}},
                   .infeasible_reason = "too small"};
  const v1::AllocateWorkersResponse wire = ToWire(answer);
  ASSERT_EQ(wire.allocations_size(), 2);
  const v1::JobAllocation& job = wire.allocations(0);
  EXPECT_EQ(job.id(), "a");
  EXPECT_FALSE(job.has_error());
  EXPECT_EQ(job.workers(), 3);
  EXPECT_EQ(job.parameter_servers(), 2);
  EXPECT_EQ(job.utility(), 5);
  EXPECT_EQ(job.speedup(), 2.5);
  EXPECT_EQ(job.examples_per_second(), 30);
  EXPECT_TRUE(job.interpolated());
  EXPECT_EQ(job.duration().nanos(), 500'000'000);
  EXPECT_EQ(job.profile_digest(), "digest");
  ASSERT_EQ(job.curve_size(), 1);
  EXPECT_EQ(job.curve(0).workers(), 3);
  EXPECT_EQ(job.curve(0).parameter_servers(), 2);
  EXPECT_EQ(job.curve(0).confidence_interval().upper(), 31);
  ASSERT_EQ(job.warnings_size(), 1);
  EXPECT_EQ(job.warnings(0).reason(), v1::Warning::NOT_STEADY);
  EXPECT_EQ(job.warnings(0).message(), "3 workers: it drifts");
  EXPECT_EQ(wire.allocations(1).error().code(), 3);
  google::rpc::BadRequest bad_request;
  ASSERT_TRUE(wire.allocations(1).error().details(1).UnpackTo(&bad_request));
  EXPECT_EQ(bad_request.field_violations(0).field(), "weight");
  EXPECT_EQ(wire.total_utility(), 5);
  EXPECT_EQ(wire.objective_value(), 6);
  EXPECT_EQ(wire.workers(), 3);
  EXPECT_EQ(wire.parameter_servers(), 2);
  EXPECT_EQ(wire.one_more_worker().utility_gain(), 0.5);
  EXPECT_EQ(wire.one_more_worker().objective_gain(), 0.25);
  EXPECT_EQ(wire.one_more_worker().changes(0).id(), "b");
  EXPECT_EQ(wire.one_more_worker().changes(0).workers(), 4);
  EXPECT_EQ(wire.one_more_worker().changes(0).parameter_servers(), 1);
  EXPECT_EQ(wire.infeasible_reason(), "too small");
  EXPECT_EQ(wire.options().seed(), 42U);
}

}  // namespace
}  // namespace stepcast::server::allocation_convert_test
