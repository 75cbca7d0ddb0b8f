#include "server/rpc/job_rpc.h"

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/convert/operation_convert.h"
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

}  // namespace stepcast::server
