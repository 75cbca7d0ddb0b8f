// The computation of a job: the unary method of its request, without a call.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "server/base/clock.h"
#include "server/handlers/prediction_handler.h"
#include "server/operations/operation_runner.h"

namespace stepcast::server {

struct JobComputationOptions {
  const PredictionHandler& handler;
  const Clock& clock;
  double max_seconds = 0;  // of one attempt
};

// Checks the request, a serialised StartJobRequest, which may block on the store of profiles. What
// is left gives a serialised reply, equal to the unary method's but for engine_seconds and cached,
// or fails as that does; with DEADLINE_EXCEEDED, reason JOB_TOO_LONG, once it has taken
// max_seconds. Its progress is in steps of kStopCheckInterval. Lifetime: what the options borrow
// outlives the work.
absl::StatusOr<OperationWork> CheckJob(const std::string& request,
                                       const JobComputationOptions& options);

}  // namespace stepcast::server
