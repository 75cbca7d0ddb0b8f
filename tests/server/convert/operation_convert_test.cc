#include "server/convert/operation_convert.h"

#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"

#include "core/base/error.h"

namespace stepcast::server::operation_convert_test {
namespace {

v1::StartJobRequest Job(int workers) {
  v1::StartJobRequest job;
  job.mutable_predict_throughput()->set_profile("profiles/a");
  job.mutable_predict_throughput()->add_worker_counts(workers);
  return job;
}

StoredOperation Stored(OperationState state, const std::string& result = "") {
  StoredOperation operation{.record = {.id = "o-1",
                                       .method = "OptimizeOrder",
                                       .state = state,
                                       .attempts = 3,
                                       .released = 1},
                            .result = result};
  operation.record.create_time_ns = 5'000'000'007;
  return operation;
}

std::string ReasonOf(const google::rpc::Status& status) {
  google::rpc::ErrorInfo info;
  EXPECT_TRUE(status.details_size() > 0 && status.details(0).UnpackTo(&info));
  return info.reason();
}

v1::JobMetadata MetadataOf(const google::longrunning::Operation& operation) {
  v1::JobMetadata metadata;
  EXPECT_TRUE(operation.metadata().UnpackTo(&metadata));
  return metadata;
}

TEST(OperationConvertTest, WhatIsKeptOfAJobIsItsComputationWithoutItsRequestId) {
  v1::StartJobRequest job = Job(1);
  job.set_request_id("id");
  const StartJobCall call = FromWire(job);
  EXPECT_TRUE(call.faults.empty());
  EXPECT_EQ(call.operation.method, "PredictThroughput");
  EXPECT_EQ(call.operation.request_id, "id");
  // A UUID is the same in capitals; what is none stays as it is, to be told of.
  job.set_request_id("ABCDEF11-2222-4333-8444-555555555555");
  EXPECT_EQ(FromWire(job).operation.request_id, "abcdef11-2222-4333-8444-555555555555");
  job.set_request_id("No Uuid");
  EXPECT_EQ(FromWire(job).operation.request_id, "No Uuid");
  v1::StartJobRequest kept;
  ASSERT_TRUE(kept.ParseFromString(call.operation.request));
  EXPECT_EQ(kept.SerializeAsString(), Job(1).SerializeAsString());
  EXPECT_EQ(FromWire(Job(1)).operation.request_digest, call.operation.request_digest);
  EXPECT_NE(FromWire(Job(2)).operation.request_digest, call.operation.request_digest);
}

TEST(OperationConvertTest, EveryComputationHasItsMethod) {
  v1::StartJobRequest job;
  EXPECT_EQ(FromWire(job).faults.at(0).field, "computation");
  job.mutable_recommend_workers();
  EXPECT_EQ(FromWire(job).operation.method, "RecommendWorkers");
  job.mutable_optimize_order();
  EXPECT_EQ(FromWire(job).operation.method, "OptimizeOrder");
  job.mutable_allocate_workers();
  EXPECT_EQ(FromWire(job).operation.method, "AllocateWorkers");
  job.mutable_compare_models();
  EXPECT_EQ(FromWire(job).operation.method, "CompareModels");
  job.mutable_diagnose_job()->set_profile("profiles/p");
  EXPECT_EQ(FromWire(job).operation.method, "DiagnoseJob");
  EXPECT_EQ(FromWire(job).profile, "profiles/p");
  job.mutable_optimize_job()->set_profile("profiles/q");
  EXPECT_EQ(FromWire(job).operation.method, "OptimizeJob");
  EXPECT_EQ(FromWire(job).profile, "profiles/q");
}

TEST(OperationConvertTest, AnOpenOneHasNeitherResponseNorError) {
  const google::longrunning::Operation queued = ToWire(Stored(OperationState::kQueued));
  EXPECT_EQ(queued.name(), "operations/o-1");
  EXPECT_FALSE(queued.done());
  EXPECT_EQ(queued.result_case(), google::longrunning::Operation::RESULT_NOT_SET);
  const v1::JobMetadata metadata = MetadataOf(queued);
  EXPECT_EQ(metadata.state(), v1::JobMetadata::QUEUED);
  EXPECT_EQ(metadata.create_time().seconds(), 5);
  EXPECT_EQ(metadata.create_time().nanos(), 7);
  EXPECT_FALSE(metadata.has_start_time());
  EXPECT_FALSE(metadata.has_end_time());
}

TEST(OperationConvertTest, AResponseIsTheKeptBytesUnderTheMethodsType) {
  v1::OptimizeOrderResponse response;
  response.set_profile_digest("d");
  const google::longrunning::Operation done =
      ToWire(Stored(OperationState::kSucceeded, response.SerializeAsString()));
  EXPECT_TRUE(done.done());
  v1::OptimizeOrderResponse unpacked;
  ASSERT_TRUE(done.response().UnpackTo(&unpacked)) << done.response().type_url();
  EXPECT_EQ(unpacked.profile_digest(), "d");
}

TEST(OperationConvertTest, EveryOtherEndHasItsError) {
  const google::longrunning::Operation failed = ToWire(Stored(
      OperationState::kFailed,
      ErrorBytes(MakeError(absl::StatusCode::kNotFound, "no", {.reason = "PROFILE_NOT_FOUND"}))));
  EXPECT_EQ(failed.error().code(), 5);
  EXPECT_EQ(ReasonOf(failed.error()), "PROFILE_NOT_FOUND");
  const google::longrunning::Operation cancelled = ToWire(Stored(OperationState::kCancelled));
  EXPECT_EQ(cancelled.error().code(), 1);
  EXPECT_EQ(ReasonOf(cancelled.error()), "CANCELLED");
  const google::longrunning::Operation exhausted = ToWire(Stored(OperationState::kExhausted));
  EXPECT_EQ(exhausted.error().code(), 10);
  EXPECT_EQ(ReasonOf(exhausted.error()), "ATTEMPTS_EXHAUSTED");
  EXPECT_EQ(exhausted.error().message(),
            "given up after 2 attempts, in each of which the server went away");
  EXPECT_EQ(MetadataOf(exhausted).state(), v1::JobMetadata::FAILED);
}

TEST(OperationConvertTest, DamagedErrorBytesAreStillAnError) {
  const google::longrunning::Operation damaged = ToWire(Stored(OperationState::kFailed, "\xff"));
  EXPECT_TRUE(damaged.done());
  EXPECT_EQ(damaged.error().code(), static_cast<int>(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace stepcast::server::operation_convert_test
