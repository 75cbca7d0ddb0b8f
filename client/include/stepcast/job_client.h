// Starts computations that are too long for a call, and follows them.
//
//   const JobClient jobs = client.Jobs();
//   auto job = jobs.Start({.computation = OptimizeOrderRequest{.source = "profiles/resnet50",
//   .methods = {OrderMethod::kSearch}}}); if (job.ok()) job = jobs.Wait(job->name, {.timeout =
//   std::chrono::hours(2)}); if (job.ok() && job->status.ok())
//   Use(std::get<OptimizeOrderResponse>(job->reply));
//
// A job is kept by the service and goes on without this client, from one server to another. That it
// failed is in Job::status and fails no call here.
//
// Thread safety, deadlines and errors: as of Client. Retries: all but Delete, whose second attempt
// would report NOT_FOUND for a success; Start by its request_id.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "stepcast/client_options.h"
#include "stepcast/job.h"

namespace stepcast::client {

class Connection;

class JobClient {
 public:
  // As Client::Jobs makes it.
  JobClient(std::shared_ptr<Connection> connection, const ClientOptions& options);

  // Returns at once. A wrong computation is refused here only if the service cannot read it; else
  // its job fails.
  absl::StatusOr<Job> Start(const StartJobRequest& request, const CallOptions& call = {}) const;

  // `name` of these: operations/{operation}. Errors: NOT_FOUND.
  absl::StatusOr<Job> Get(const std::string& name, const CallOptions& call = {}) const;
  // Returns once it is done. Errors: DEADLINE_EXCEEDED, reason JOB_NOT_DONE, where it was not
  // within the timeout; it goes on then. Once the service has answered, it is waited for through
  // restarts and outages of up to a minute.
  absl::StatusOr<Job> Wait(const std::string& name, const CallOptions& call = {}) const;
  // Asks for its end, which comes soon. What is done stays as it is.
  absl::Status Cancel(const std::string& name, const CallOptions& call = {}) const;
  // Forgets one that is done. Errors: FAILED_PRECONDITION if it is not.
  absl::Status Delete(const std::string& name, const CallOptions& call = {}) const;

  // One page.
  absl::StatusOr<ListJobsResponse> List(const ListJobsRequest& request = {},
                                        const CallOptions& call = {}) const;
  // All pages from request.page_token on, each with a deadline of its own. Errors: OUT_OF_RANGE,
  // reason TOO_MANY_JOBS, if there are more than `max`.
  absl::StatusOr<std::vector<Job>> ListAll(ListJobsRequest request = {}, size_t max = 100'000,
                                           const CallOptions& call = {}) const;

 private:
  std::shared_ptr<Connection> connection_;
  ClientOptions options_;
};

}  // namespace stepcast::client
