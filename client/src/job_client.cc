#include "stepcast/job_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/client_call.h"
#include "client/src/connection.h"
#include "client/src/convert/job_proto.h"
#include "client/src/local_error.h"

namespace stepcast::client {

namespace longrunning = google::longrunning;

JobClient::JobClient(std::shared_ptr<Connection> connection, const ClientOptions& options)
    : connection_(std::move(connection)), options_(options) {}

absl::StatusOr<Job> JobClient::Start(const StartJobRequest& request,
                                     const CallOptions& call) const {
  v1::StartJobRequest message;
  ToProto(request, message);
  message.set_request_id(Identified(request.request_id));
  return Converted<Job>(connection_->StartJob(message, InForce(options_, call)));
}

absl::StatusOr<Job> JobClient::Get(const std::string& name, const CallOptions& call) const {
  longrunning::GetOperationRequest message;
  message.set_name(name);
  return Converted<Job>(connection_->GetOperation(message, InForce(options_, call)));
}

absl::StatusOr<Job> JobClient::Wait(const std::string& name, const CallOptions& call) const {
  return Converted<Job>(connection_->AwaitOperation(name, InForce(options_, call)));
}

absl::Status JobClient::Cancel(const std::string& name, const CallOptions& call) const {
  longrunning::CancelOperationRequest message;
  message.set_name(name);
  return connection_->CancelOperation(message, InForce(options_, call));
}

absl::Status JobClient::Delete(const std::string& name, const CallOptions& call) const {
  longrunning::DeleteOperationRequest message;
  message.set_name(name);
  return connection_->DeleteOperation(message, InForce(options_, call));
}

absl::StatusOr<ListJobsResponse> JobClient::List(const ListJobsRequest& request,
                                                 const CallOptions& call) const {
  longrunning::ListOperationsRequest message;
  ToProto(request, message);
  return Converted<ListJobsResponse>(connection_->ListOperations(message, InForce(options_, call)));
}

absl::StatusOr<std::vector<Job>> JobClient::ListAll(ListJobsRequest request, size_t max,
                                                    const CallOptions& call) const {
  std::vector<Job> jobs;
  do {
    absl::StatusOr<ListJobsResponse> page = List(request, call);
    if (!page.ok()) return page.status();
    for (Job& job : page->jobs) jobs.push_back(std::move(job));
    if (jobs.size() > max) {
      return MakeLocalError(absl::StatusCode::kOutOfRange, "TOO_MANY_JOBS",
                            absl::StrCat("there are more than ", max, " jobs"),
                            {{"max", absl::StrCat(max)}});
    }
    // A server that repeats a token would keep us here for ever.
    if (!page->next_page_token.empty() && page->next_page_token == request.page_token) {
      return MakeLocalError(absl::StatusCode::kInternal, "PAGE_TOKEN_REPEATED",
                            "the server gave the same page token twice");
    }
    request.page_token = page->next_page_token;
  } while (!request.page_token.empty());
  return jobs;
}

}  // namespace stepcast::client
