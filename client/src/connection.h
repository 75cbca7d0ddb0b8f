// How a Client reaches the service: one method a call of the service, in its messages.
//
// Implementations: over gRPC with retries (RemoteConnection), and in this process without a server
// (client/local). Threads: safe; any number of calls at once. Calls block. Failure: the canonical
// code, with the details of the service as payloads (error_details.h).
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/byte_stream.h"
#include "google/longrunning/operations.pb.h"

#include "stepcast/client_options.h"
#include "stepcast/v1/job_service.pb.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::client {

// What is in force for one call.
struct Call {
  std::chrono::nanoseconds timeout{0};
  RetryPolicy retry;
};

// Takes the next bytes of a stream. Not OK: no more are wanted, and why.
using TakeChunk = absl::FunctionRef<absl::Status(std::string_view chunk)>;

class Connection {
 public:
  virtual ~Connection() = default;

  virtual absl::StatusOr<v1::Profile> CreateProfile(const v1::CreateProfileRequest& request,
                                                    const Call& call) = 0;
  virtual absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                                    std::string_view bytes, const Call& call) = 0;
  virtual absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
      const Call& call) = 0;
  virtual absl::StatusOr<v1::Profile> GetProfile(const v1::GetProfileRequest& request,
                                                 const Call& call) = 0;
  virtual absl::StatusOr<v1::ListProfilesResponse> ListProfiles(
      const v1::ListProfilesRequest& request, const Call& call) = 0;
  virtual absl::Status DeleteProfile(const v1::DeleteProfileRequest& request, const Call& call) = 0;

  virtual absl::StatusOr<v1::PredictThroughputResponse> PredictThroughput(
      const v1::PredictThroughputRequest& request, const Call& call) = 0;
  virtual absl::StatusOr<v1::RecommendWorkersResponse> RecommendWorkers(
      const v1::RecommendWorkersRequest& request, const Call& call) = 0;
  virtual absl::StatusOr<v1::OptimizeOrderResponse> OptimizeOrder(
      const v1::OptimizeOrderRequest& request, const Call& call) = 0;
  virtual absl::StatusOr<v1::AllocateWorkersResponse> AllocateWorkers(
      const v1::AllocateWorkersRequest& request, const Call& call) = 0;
  virtual absl::StatusOr<v1::CompareModelsResponse> CompareModels(
      const v1::CompareModelsRequest& request, const Call& call) = 0;
  virtual absl::StatusOr<v1::FitParsingOverheadResponse> FitParsingOverhead(
      const v1::FitParsingOverheadRequest& request, const Call& call) = 0;
  // Hands every chunk to `take`; what that fails with ends the call.
  virtual absl::Status GenerateTrace(const v1::GenerateTraceRequest& request, TakeChunk take,
                                     const Call& call) = 0;

  virtual absl::StatusOr<google::longrunning::Operation> StartJob(
      const v1::StartJobRequest& request, const Call& call) = 0;
  virtual absl::StatusOr<google::longrunning::Operation> GetOperation(
      const google::longrunning::GetOperationRequest& request, const Call& call) = 0;
  virtual absl::StatusOr<google::longrunning::ListOperationsResponse> ListOperations(
      const google::longrunning::ListOperationsRequest& request, const Call& call) = 0;
  // Once it is done.
  virtual absl::StatusOr<google::longrunning::Operation> AwaitOperation(const std::string& name,
                                                                        const Call& call) = 0;
  virtual absl::Status CancelOperation(const google::longrunning::CancelOperationRequest& request,
                                       const Call& call) = 0;
  virtual absl::Status DeleteOperation(const google::longrunning::DeleteOperationRequest& request,
                                       const Call& call) = 0;
};

}  // namespace stepcast::client
