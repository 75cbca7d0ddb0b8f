#include "client/src/retry.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>

#include "client/src/error_status.h"

#include "stepcast/error_details.h"

namespace stepcast::client {

namespace {

class SystemRetryEnvironment : public RetryEnvironment {
 public:
  Time Now() override { return std::chrono::steady_clock::now(); }
  void Sleep(std::chrono::nanoseconds length) override { std::this_thread::sleep_for(length); }
  double Chance() override {
    const std::lock_guard lock(mutex_);
    return std::uniform_real_distribution<double>(0, 1)(generator_);
  }

 private:
  std::mutex mutex_;
  std::minstd_rand generator_{std::random_device{}()};  // guarded by mutex_
};

}  // namespace

std::unique_ptr<RetryEnvironment> MakeSystemRetryEnvironment() {
  return std::make_unique<SystemRetryEnvironment>();
}

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
  // CANCELLED without a reason is gRPC's own answer to a call that reaches a server in the moment
  // of its shutdown.
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

std::string NewRequestId() {
  constexpr char kHex[] = "0123456789abcdef";
  std::random_device device;
  std::array<uint8_t, 16> bytes{};
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(device());
  bytes[6] = static_cast<uint8_t>((bytes[6] & 0x0f) | 0x40);  // version 4
  bytes[8] = static_cast<uint8_t>((bytes[8] & 0x3f) | 0x80);  // variant of RFC 4122
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    text.push_back(kHex[bytes[i] >> 4]);
    text.push_back(kHex[bytes[i] & 0x0f]);
  }
  return text;
}

}  // namespace stepcast::client
