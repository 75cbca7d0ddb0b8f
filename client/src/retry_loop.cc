#include "client/src/retry_loop.h"

#include <algorithm>

#include "client/src/error_status.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

namespace {

std::chrono::nanoseconds Backoff(const RetryPolicy& policy, int retry, double chance) {
  // Longer than any deadline, and safe to add to.
  constexpr double kLongest = 1e17;
  double ceiling = static_cast<double>(policy.initial_backoff.count());
  const double longest = std::clamp(static_cast<double>(policy.max_backoff.count()), 0.0, kLongest);
  for (int i = 0; i < retry && ceiling < longest; ++i) ceiling *= std::max(policy.multiplier, 1.0);
  ceiling = std::clamp(ceiling, 0.0, longest);
  return std::chrono::nanoseconds(static_cast<int64_t>(ceiling * (0.5 + 0.5 * chance)));
}

}  // namespace

std::optional<std::chrono::nanoseconds> PauseBeforeRetry(const RetryPolicy& policy,
                                                         const absl::Status& status, int attempts,
                                                         double chance) {
  if (attempts >= policy.max_attempts) return std::nullopt;
  const ErrorDetails details = GetErrorDetails(status);
  const std::optional<std::chrono::nanoseconds> asked = details.retry_delay;
  // Without RetryInfo, RESOURCE_EXHAUSTED means that the request itself is too large, today and
  // tomorrow.
  const bool later =
      absl::IsUnavailable(status) || (absl::IsResourceExhausted(status) && asked.has_value());
  // What gRPC itself, giving no reason, answers to a call that reaches a server in the moment of
  // its shutdown.
  const bool retryable = later || (absl::IsCancelled(status) && details.reason.empty());
  if (!retryable) return std::nullopt;
  const std::chrono::nanoseconds backoff = Backoff(policy, attempts - 1, chance);
  const std::chrono::nanoseconds room = std::chrono::nanoseconds::max() - backoff;
  return backoff +
         std::clamp(asked.value_or(std::chrono::nanoseconds(0)), std::chrono::nanoseconds(0), room);
}

absl::Status RetryLoop(const CallTerms& terms, Repeatable repeatable, RetryEnvironment& environment,
                       absl::FunctionRef<absl::Status(std::chrono::nanoseconds timeout)> attempt) {
  constexpr std::chrono::nanoseconds kNone{0};
  const RetryEnvironment::Time start = environment.Now();
  for (int attempts = 1;; ++attempts) {
    const std::chrono::nanoseconds left =
        terms.timeout > kNone ? terms.timeout - (environment.Now() - start) : kNone;
    // gRPC looks at its deadlines once a millisecond, and would let a quick call through.
    if (left <= kNone) {
      return MakeLocalError(absl::StatusCode::kDeadlineExceeded, "DEADLINE_EXCEEDED",
                            "the call's time ran out before it was made");
    }
    absl::Status status = attempt(left);
    if (status.ok() || repeatable == Repeatable::kNo) return status;
    const std::optional<std::chrono::nanoseconds> pause =
        PauseBeforeRetry(terms.retry, status, attempts, environment.Chance());
    if (!pause || *pause >= terms.timeout - (environment.Now() - start)) return status;
    environment.Sleep(*pause);
  }
}

}  // namespace stepcast::client
