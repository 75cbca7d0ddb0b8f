// The loop that makes a call until it succeeds, fails for good, or runs out of time.
#pragma once

#include <chrono>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/connection.h"
#include "client/src/retry_environment.h"

#include "stepcast/client_options.h"

namespace stepcast::client {

// The permission to make a call twice.
enum class Repeatable : bool { kNo, kYes };

// The pause before the retry after `attempts` failed attempts, of which the last one ended with
// `status`; none: do not retry. `chance` is uniform in [0, 1).
std::optional<std::chrono::nanoseconds> PauseBeforeRetry(const RetryPolicy& policy,
                                                         const absl::Status& status, int attempts,
                                                         double chance);

// Each attempt gets what is left of the call's time.
absl::Status RetryLoop(const CallTerms& terms, Repeatable repeatable, RetryEnvironment& environment,
                       absl::FunctionRef<absl::Status(std::chrono::nanoseconds timeout)> attempt);

}  // namespace stepcast::client
