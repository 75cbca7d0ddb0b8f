#include <google/protobuf/empty.pb.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "google/longrunning/operations.grpc.pb.h"

#include "core/base/error.h"
#include "server/convert/operation_convert.h"
#include "server/rpc/services.h"
#include "server/rpc/unary_call.h"
#include "stepcast/v1/job_service.grpc.pb.h"

namespace stepcast::server {

namespace {

absl::Status TooLarge(int64_t bytes, int64_t max_bytes) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("a job of ", bytes, " bytes is above the limit max_job_bytes = ", max_bytes),
      {.reason = "JOB_TOO_LARGE",
       .metadata = {{"bytes", absl::StrCat(bytes)}, {"max_job_bytes", absl::StrCat(max_bytes)}},
       .quota_subject = "max_job_bytes"});
}

class JobRpc final
    : public v1::JobService::WithRawCallbackMethod_StartJob<v1::JobService::Service> {
 public:
  explicit JobRpc(const OperationEnvironment& environment) : environment_(environment) {}

  grpc::ServerUnaryReactor* StartJob(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override {
    auto* call = new UnaryCall(environment_.calls, v1::JobService::service_full_name(),
                               {"StartJob", context, request, reply});
    call->Start([this, bytes = static_cast<int64_t>(request->Length())](UnaryCall& started) {
      if (bytes > environment_.max_job_bytes)
        return started.Fail(TooLarge(bytes, environment_.max_job_bytes));
      v1::StartJobRequest message;
      const absl::Status parsed = started.Read(message);
      if (!parsed.ok()) return started.Fail(parsed);
      const absl::StatusOr<StoredOperation> operation =
          environment_.handler.Start(FromWire(message), started.state().caller());
      if (!operation.ok()) return started.Fail(operation.status());
      environment_.started();
      started.Reply(ToWire(*operation));
    });
    return call;
  }

 private:
  const OperationEnvironment& environment_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeJobService(const OperationEnvironment& environment) {
  return std::make_unique<JobRpc>(environment);
}

namespace {

namespace longrunning = google::longrunning;

using OperationsMethods = longrunning::Operations::WithRawCallbackMethod_ListOperations<
    longrunning::Operations::WithRawCallbackMethod_GetOperation<
        longrunning::Operations::WithRawCallbackMethod_DeleteOperation<
            longrunning::Operations::WithRawCallbackMethod_CancelOperation<
                longrunning::Operations::WithRawCallbackMethod_WaitOperation<
                    longrunning::Operations::Service>>>>>;

class OperationsRpc final : public OperationsMethods {
 public:
  explicit OperationsRpc(const OperationEnvironment& environment) : environment_(environment) {}

  grpc::ServerUnaryReactor* ListOperations(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* reply) override {
    return Start<longrunning::ListOperationsRequest>(
        {"ListOperations", context, request, reply},
        [this](UnaryCall& call, const longrunning::ListOperationsRequest& message) {
          const auto answer = environment_.handler.List(FromWire(message));
          if (!answer.ok()) return call.Fail(answer.status());
          call.Reply(ToWire(*answer));
        });
  }

  grpc::ServerUnaryReactor* GetOperation(grpc::CallbackServerContext* context,
                                         const grpc::ByteBuffer* request,
                                         grpc::ByteBuffer* reply) override {
    return Start<longrunning::GetOperationRequest>(
        {"GetOperation", context, request, reply},
        [this](UnaryCall& call, const longrunning::GetOperationRequest& message) {
          const auto operation = environment_.handler.Get(message.name());
          if (!operation.ok()) return call.Fail(operation.status());
          call.Reply(ToWire(*operation));
        });
  }

  grpc::ServerUnaryReactor* DeleteOperation(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* reply) override {
    return Start<longrunning::DeleteOperationRequest>(
        {"DeleteOperation", context, request, reply},
        [this](UnaryCall& call, const longrunning::DeleteOperationRequest& message) {
          ReplyEmpty(call, environment_.handler.Delete(message.name()));
        });
  }

  grpc::ServerUnaryReactor* CancelOperation(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* reply) override {
    return Start<longrunning::CancelOperationRequest>(
        {"CancelOperation", context, request, reply},
        [this](UnaryCall& call, const longrunning::CancelOperationRequest& message) {
          const absl::Status status = environment_.handler.Cancel(message.name());
          if (status.ok()) environment_.cancelled();
          ReplyEmpty(call, status);
        });
  }

  grpc::ServerUnaryReactor* WaitOperation(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* reply) override {
    return Start<longrunning::WaitOperationRequest>(
        {"WaitOperation", context, request, reply},
        [this](UnaryCall& call, const longrunning::WaitOperationRequest& message) {
          Wait(call, FromWire(message));
        });
  }

 private:
  template <typename Request, typename Part>
  grpc::ServerUnaryReactor* Start(const UnaryWire& wire, Part part) {
    return StartUnary<Request>(environment_.calls, longrunning::Operations::service_full_name(),
                               wire, std::move(part));
  }

  static void ReplyEmpty(UnaryCall& call, const absl::Status& status) {
    if (!status.ok()) return call.Fail(status);
    call.Reply(google::protobuf::Empty());
  }

  void Wait(UnaryCall& call, const WaitOperationCall& asked) const {
    const absl::StatusOr<double> seconds = OperationHandler::WaitSeconds(asked);
    if (!seconds.ok()) return call.Fail(seconds.status());
    const absl::StatusOr<StoredOperation> operation = environment_.handler.Get(asked.name);
    if (!operation.ok()) return call.Fail(operation.status());
    if (IsDone(operation->record.state) || *seconds == 0) return call.Reply(ToWire(*operation));
    environment_.waiters.Wait(call, asked.name, *seconds);
    // It may have ended in between.
    environment_.waits();
  }

  const OperationEnvironment& environment_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeOperationsService(const OperationEnvironment& environment) {
  return std::make_unique<OperationsRpc>(environment);
}

}  // namespace stepcast::server
