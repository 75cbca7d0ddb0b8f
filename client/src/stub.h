// One attempt of each call of the service.
//
// Implementations: GrpcStub, and fakes in tests.
// Threads: safe; any number of calls at once. Calls block, for `timeout` at most.
// Failure: the canonical code, with the details of the service as payloads (error_details.h).
#pragma once

#include <chrono>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/connection.h"
#include "google/longrunning/operations.pb.h"

#include "stepcast/v1/job_service.pb.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::client {

class Stub {
 public:
  using Timeout = std::chrono::nanoseconds;

  virtual ~Stub() = default;

  virtual absl::StatusOr<v1::Profile> CreateProfile(const v1::CreateProfileRequest& request,
                                                    Timeout timeout) = 0;
  virtual absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                                    std::string_view bytes, Timeout timeout) = 0;
  virtual absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
      Timeout timeout) = 0;
  virtual absl::StatusOr<v1::Profile> GetProfile(const v1::GetProfileRequest& request,
                                                 Timeout timeout) = 0;
  virtual absl::StatusOr<v1::ListProfilesResponse> ListProfiles(
      const v1::ListProfilesRequest& request, Timeout timeout) = 0;
  virtual absl::Status DeleteProfile(const v1::DeleteProfileRequest& request, Timeout timeout) = 0;

  virtual absl::StatusOr<v1::PredictThroughputResponse> PredictThroughput(
      const v1::PredictThroughputRequest& request, Timeout timeout) = 0;
  virtual absl::StatusOr<v1::RecommendWorkersResponse> RecommendWorkers(
      const v1::RecommendWorkersRequest& request, Timeout timeout) = 0;
  virtual absl::StatusOr<v1::OptimizeOrderResponse> OptimizeOrder(
      const v1::OptimizeOrderRequest& request, Timeout timeout) = 0;
  virtual absl::StatusOr<v1::AllocateWorkersResponse> AllocateWorkers(
      const v1::AllocateWorkersRequest& request, Timeout timeout) = 0;
  virtual absl::StatusOr<v1::CompareModelsResponse> CompareModels(
      const v1::CompareModelsRequest& request, Timeout timeout) = 0;
  virtual absl::StatusOr<v1::FitParsingOverheadResponse> FitParsingOverhead(
      const v1::FitParsingOverheadRequest& request, Timeout timeout) = 0;
  // Hands every chunk to `take`; what that fails with ends the call.
  virtual absl::Status GenerateTrace(const v1::GenerateTraceRequest& request, TakeChunk take,
                                     Timeout timeout) = 0;

  virtual absl::StatusOr<google::longrunning::Operation> StartJob(
      const v1::StartJobRequest& request, Timeout timeout) = 0;
  virtual absl::StatusOr<google::longrunning::Operation> GetOperation(
      const google::longrunning::GetOperationRequest& request, Timeout timeout) = 0;
  virtual absl::StatusOr<google::longrunning::ListOperationsResponse> ListOperations(
      const google::longrunning::ListOperationsRequest& request, Timeout timeout) = 0;
  virtual absl::StatusOr<google::longrunning::Operation> WaitOperation(
      const google::longrunning::WaitOperationRequest& request, Timeout timeout) = 0;
  virtual absl::Status CancelOperation(const google::longrunning::CancelOperationRequest& request,
                                       Timeout timeout) = 0;
  virtual absl::Status DeleteOperation(const google::longrunning::DeleteOperationRequest& request,
                                       Timeout timeout) = 0;
};

}  // namespace stepcast::client
