#include "client/src/remote_connection.h"

#include <utility>

#include "client/src/operation_wait.h"
#include "client/src/retry_loop.h"

namespace stepcast::client {

namespace {

namespace longrunning = google::longrunning;

class RemoteConnection : public Connection {
 public:
  RemoteConnection(std::unique_ptr<Stub> stub, std::unique_ptr<RetryEnvironment> environment)
      : stub_(std::move(stub)), environment_(std::move(environment)) {}

  // What stores something is repeatable because of its request_id, and only with one.
  absl::StatusOr<v1::Profile> CreateProfile(const v1::CreateProfileRequest& request,
                                            const Call& call) override {
    return Run<v1::Profile>(
        call, IfIdentified(request.request_id()),
        [&](std::chrono::nanoseconds timeout) { return stub_->CreateProfile(request, timeout); });
  }
  absl::StatusOr<v1::Profile> UploadProfile(const v1::UploadProfileRequest::Header& header,
                                            std::string_view bytes, const Call& call) override {
    return Run<v1::Profile>(call, IfIdentified(header.request_id()),
                            [&](std::chrono::nanoseconds timeout) {
                              return stub_->UploadProfile(header, bytes, timeout);
                            });
  }
  absl::StatusOr<v1::ImportProfileResponse> ImportProfile(
      const v1::ImportProfileRequest::Header& header, const ImportStreams& streams,
      const Call& call) override {
    return Run<v1::ImportProfileResponse>(call, IfIdentified(header.request_id()),
                                          [&](std::chrono::nanoseconds timeout) {
                                            return stub_->ImportProfile(header, streams, timeout);
                                          });
  }
  absl::Status DeleteProfile(const v1::DeleteProfileRequest& request, const Call& call) override {
    return RetryLoop(call, Repeatable::kNo, *environment_, [&](std::chrono::nanoseconds timeout) {
      return stub_->DeleteProfile(request, timeout);
    });
  }

  // These change nothing.
  absl::StatusOr<v1::Profile> GetProfile(const v1::GetProfileRequest& request,
                                         const Call& call) override {
    return Run<v1::Profile>(call, Repeatable::kYes, [&](std::chrono::nanoseconds timeout) {
      return stub_->GetProfile(request, timeout);
    });
  }
  absl::StatusOr<v1::ListProfilesResponse> ListProfiles(const v1::ListProfilesRequest& request,
                                                        const Call& call) override {
    return Run<v1::ListProfilesResponse>(
        call, Repeatable::kYes,
        [&](std::chrono::nanoseconds timeout) { return stub_->ListProfiles(request, timeout); });
  }
  absl::StatusOr<v1::PredictThroughputResponse> PredictThroughput(
      const v1::PredictThroughputRequest& request, const Call& call) override {
    return Run<v1::PredictThroughputResponse>(call, Repeatable::kYes,
                                              [&](std::chrono::nanoseconds timeout) {
                                                return stub_->PredictThroughput(request, timeout);
                                              });
  }
  absl::StatusOr<v1::RecommendWorkersResponse> RecommendWorkers(
      const v1::RecommendWorkersRequest& request, const Call& call) override {
    return Run<v1::RecommendWorkersResponse>(call, Repeatable::kYes,
                                             [&](std::chrono::nanoseconds timeout) {
                                               return stub_->RecommendWorkers(request, timeout);
                                             });
  }
  absl::StatusOr<v1::OptimizeOrderResponse> OptimizeOrder(const v1::OptimizeOrderRequest& request,
                                                          const Call& call) override {
    return Run<v1::OptimizeOrderResponse>(
        call, Repeatable::kYes,
        [&](std::chrono::nanoseconds timeout) { return stub_->OptimizeOrder(request, timeout); });
  }
  absl::StatusOr<v1::AllocateWorkersResponse> AllocateWorkers(
      const v1::AllocateWorkersRequest& request, const Call& call) override {
    return Run<v1::AllocateWorkersResponse>(
        call, Repeatable::kYes,
        [&](std::chrono::nanoseconds timeout) { return stub_->AllocateWorkers(request, timeout); });
  }
  absl::StatusOr<v1::CompareModelsResponse> CompareModels(const v1::CompareModelsRequest& request,
                                                          const Call& call) override {
    return Run<v1::CompareModelsResponse>(
        call, Repeatable::kYes,
        [&](std::chrono::nanoseconds timeout) { return stub_->CompareModels(request, timeout); });
  }
  absl::StatusOr<v1::FitParsingOverheadResponse> FitParsingOverhead(
      const v1::FitParsingOverheadRequest& request, const Call& call) override {
    return Run<v1::FitParsingOverheadResponse>(call, Repeatable::kYes,
                                               [&](std::chrono::nanoseconds timeout) {
                                                 return stub_->FitParsingOverhead(request, timeout);
                                               });
  }

  // Repeatable only until something was handed on, which cannot be taken back.
  absl::Status GenerateTrace(const v1::GenerateTraceRequest& request, TakeChunk take,
                             const Call& call) override {
    bool begun = false;
    absl::Status status;
    const auto take_more = [&](std::string_view chunk) {
      begun = true;
      return take(chunk);
    };
    const absl::Status unbegun =
        RetryLoop(call, Repeatable::kYes, *environment_, [&](std::chrono::nanoseconds timeout) {
          status = stub_->GenerateTrace(request, take_more, timeout);
          return begun ? absl::OkStatus() : status;
        });
    return begun ? status : unbegun;
  }

  absl::StatusOr<longrunning::Operation> StartJob(const v1::StartJobRequest& request,
                                                  const Call& call) override {
    return Run<longrunning::Operation>(
        call, IfIdentified(request.request_id()),
        [&](std::chrono::nanoseconds timeout) { return stub_->StartJob(request, timeout); });
  }
  absl::StatusOr<longrunning::Operation> GetOperation(
      const longrunning::GetOperationRequest& request, const Call& call) override {
    return Run<longrunning::Operation>(
        call, Repeatable::kYes,
        [&](std::chrono::nanoseconds timeout) { return stub_->GetOperation(request, timeout); });
  }
  absl::StatusOr<longrunning::ListOperationsResponse> ListOperations(
      const longrunning::ListOperationsRequest& request, const Call& call) override {
    return Run<longrunning::ListOperationsResponse>(
        call, Repeatable::kYes,
        [&](std::chrono::nanoseconds timeout) { return stub_->ListOperations(request, timeout); });
  }
  absl::StatusOr<longrunning::Operation> AwaitOperation(const std::string& name,
                                                        const Call& call) override {
    return client::AwaitOperation(name, call, *stub_, *environment_);
  }
  // What is cancelled already stays so.
  absl::Status CancelOperation(const longrunning::CancelOperationRequest& request,
                               const Call& call) override {
    return RetryLoop(call, Repeatable::kYes, *environment_, [&](std::chrono::nanoseconds timeout) {
      return stub_->CancelOperation(request, timeout);
    });
  }
  absl::Status DeleteOperation(const longrunning::DeleteOperationRequest& request,
                               const Call& call) override {
    return RetryLoop(call, Repeatable::kNo, *environment_, [&](std::chrono::nanoseconds timeout) {
      return stub_->DeleteOperation(request, timeout);
    });
  }

 private:
  static Repeatable IfIdentified(const std::string& request_id) {
    return request_id.empty() ? Repeatable::kNo : Repeatable::kYes;
  }

  template <typename Reply, typename Attempt>
  absl::StatusOr<Reply> Run(const Call& call, Repeatable repeatable, const Attempt& attempt) {
    absl::StatusOr<Reply> reply;
    absl::Status status =
        RetryLoop(call, repeatable, *environment_, [&](std::chrono::nanoseconds timeout) {
          reply = attempt(timeout);
          return reply.status();
        });
    if (!status.ok()) return status;
    return reply;
  }

  std::unique_ptr<Stub> stub_;
  std::unique_ptr<RetryEnvironment> environment_;
};

}  // namespace

std::shared_ptr<Connection> MakeRemoteConnection(std::unique_ptr<Stub> stub,
                                                 std::unique_ptr<RetryEnvironment> environment) {
  return std::make_shared<RemoteConnection>(std::move(stub), std::move(environment));
}

}  // namespace stepcast::client
