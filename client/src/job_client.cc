#include "stepcast/job_client.h"

#include <google/protobuf/empty.pb.h>

#include <utility>

#include "client/src/all_pages.h"
#include "client/src/connection.h"
#include "client/src/request_id.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

namespace longrunning = google::longrunning;

JobClient::JobClient(std::shared_ptr<Connection> connection, const ClientOptions& options)
    : connection_(std::move(connection)), options_(options) {}

absl::StatusOr<longrunning::Operation> JobClient::Start(v1::StartJobRequest request,
                                                        const CallOptions& call) const {
  Identify(request);
  return CallFor<longrunning::Operation>(*connection_, request, TermsOf(options_, call));
}

absl::StatusOr<longrunning::Operation> JobClient::Get(const std::string& name,
                                                      const CallOptions& call) const {
  longrunning::GetOperationRequest request;
  request.set_name(name);
  return CallFor<longrunning::Operation>(*connection_, request, TermsOf(options_, call));
}

absl::StatusOr<longrunning::Operation> JobClient::Wait(const std::string& name,
                                                       const CallOptions& call) const {
  return connection_->AwaitOperation(name, TermsOf(options_, call));
}

absl::Status JobClient::Cancel(const std::string& name, const CallOptions& call) const {
  longrunning::CancelOperationRequest request;
  request.set_name(name);
  google::protobuf::Empty nothing;
  return CallMethod(*connection_, request, nothing, TermsOf(options_, call));
}

absl::Status JobClient::Delete(const std::string& name, const CallOptions& call) const {
  longrunning::DeleteOperationRequest request;
  request.set_name(name);
  google::protobuf::Empty nothing;
  return CallMethod(*connection_, request, nothing, TermsOf(options_, call));
}

absl::StatusOr<longrunning::ListOperationsResponse> JobClient::List(
    const longrunning::ListOperationsRequest& request, const CallOptions& call) const {
  return CallFor<longrunning::ListOperationsResponse>(*connection_, request,
                                                      TermsOf(options_, call));
}

absl::StatusOr<longrunning::ListOperationsResponse> JobClient::ListAll(
    longrunning::ListOperationsRequest request, size_t max, const CallOptions& call) const {
  return AllPages<longrunning::ListOperationsResponse>(
      std::move(request), {.max = max, .noun = "jobs", .reason = "TOO_MANY_JOBS"},
      [&](const longrunning::ListOperationsRequest& page) { return List(page, call); },
      [](longrunning::ListOperationsResponse& page) { return page.mutable_operations(); });
}

v1::JobMetadata GetJobMetadata(const longrunning::Operation& job) {
  v1::JobMetadata metadata;
  if (!job.metadata().UnpackTo(&metadata)) metadata.Clear();
  return metadata;
}

absl::Status GetJobStatus(const longrunning::Operation& job) {
  return job.has_error() ? ToStatus(job.error()) : absl::OkStatus();
}

}  // namespace stepcast::client
