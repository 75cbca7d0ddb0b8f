// Retries: the loop that makes a call until it succeeds, fails for good or runs out of time, its
// world, and the identifiers that make a repeated request harmless.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/connection.h"

#include "stepcast/client_options.h"

namespace stepcast::client {

// Threads: safe.
class RetryEnvironment {
 public:
  using Time = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

  virtual ~RetryEnvironment() = default;

  virtual Time Now() = 0;
  virtual void Sleep(std::chrono::nanoseconds length) = 0;
  // Uniform in [0, 1).
  virtual double Chance() = 0;
};

// The steady clock, and a generator seeded by the system's random device.
std::unique_ptr<RetryEnvironment> MakeSystemRetryEnvironment();

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

// A random UUID (RFC 4122, version 4) in lower case, from the system's random device. Threads:
// safe.
std::string NewRequestId();

// Gives a request a new request_id where it has none.
template <typename Request>
void Identify(Request& request) {
  if (request.request_id().empty()) request.set_request_id(NewRequestId());
}

}  // namespace stepcast::client
