// A client of computations that are too long for a call: starts them, and follows them.
//
//   const JobClient jobs = client.Jobs();
//   v1::StartJobRequest request;
//   request.mutable_optimize_order()->set_profile("profiles/resnet50");
//   auto job = jobs.Start(request);
//   if (job.ok()) job = jobs.Wait(job->name(), {.timeout = std::chrono::hours(2)});
//   v1::OptimizeOrderResponse reply;
//   if (job.ok() && job->response().UnpackTo(&reply)) Use(reply);
//
// A job is a google.longrunning.Operation, kept by the service; it goes on without this client,
// from one server to another. That it failed is in the operation and fails no call here.
//
// Thread safety, deadlines and errors: as of Client. Retries: all but Delete, whose second attempt
// would report NOT_FOUND for a success; Start by its request_id.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/longrunning/operations.pb.h"

#include "stepcast/client_options.h"
#include "stepcast/v1/job_service.pb.h"

namespace stepcast::client {

class Connection;

class JobClient {
 public:
  // Client::Jobs makes it.
  JobClient(std::shared_ptr<Connection> connection, const ClientOptions& options);

  // Returns at once. A wrong computation is refused here only if the service cannot read it; else
  // its job fails.
  absl::StatusOr<google::longrunning::Operation> Start(v1::StartJobRequest request,
                                                       const CallOptions& call = {}) const;

  // `name` of these: operations/{operation}. Errors: NOT_FOUND.
  absl::StatusOr<google::longrunning::Operation> Get(const std::string& name,
                                                     const CallOptions& call = {}) const;
  // Returns once it is done. Errors: DEADLINE_EXCEEDED, reason JOB_NOT_DONE, where it was not
  // within the timeout; it goes on then. Once the service has answered, it is waited for through
  // restarts and outages of up to a minute.
  absl::StatusOr<google::longrunning::Operation> Wait(const std::string& name,
                                                      const CallOptions& call = {}) const;
  // Asks for its end, which comes soon. A job that is done stays as it is.
  absl::Status Cancel(const std::string& name, const CallOptions& call = {}) const;
  // Forgets one that is done. Errors: FAILED_PRECONDITION if it is not.
  absl::Status Delete(const std::string& name, const CallOptions& call = {}) const;

  // One page.
  absl::StatusOr<google::longrunning::ListOperationsResponse> List(
      const google::longrunning::ListOperationsRequest& request = {},
      const CallOptions& call = {}) const;
  // All pages from request.page_token on as one, each with a deadline of its own.
  // Errors: OUT_OF_RANGE, reason TOO_MANY_JOBS, if there are more than `max`.
  absl::StatusOr<google::longrunning::ListOperationsResponse> ListAll(
      google::longrunning::ListOperationsRequest request = {}, size_t max = 100'000,
      const CallOptions& call = {}) const;

 private:
  std::shared_ptr<Connection> connection_;
  ClientOptions options_;
};

// The metadata of an operation that is a job; empty where it cannot be read.
v1::JobMetadata GetJobMetadata(const google::longrunning::Operation& job);

// The error that a job's call would have failed with, its details as of error_details.h.
// OK where it has not failed, or is not done.
absl::Status GetJobStatus(const google::longrunning::Operation& job);

}  // namespace stepcast::client
