#include "server/rpc/call_state.h"

#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/rpc/grpc_status.h"

namespace stepcast::server {

namespace {

constexpr double kNsPerSecond = 1e9;
constexpr int64_t kLongestNs = int64_t{1} << 61;

// The deadline on the clock's monotonic time; none where the caller set none.
std::optional<int64_t> DeadlineOf(const grpc::CallbackServerContext& context, const Clock& clock) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - std::chrono::system_clock::now()).count();
  return left > kLongestNs ? std::nullopt : std::optional<int64_t>(clock.MonotonicNs() + left);
}

// A code that says that something is wrong here, not with the request.
bool IsOurs(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown || code == absl::StatusCode::kDataLoss ||
         code == absl::StatusCode::kUnavailable;
}

}  // namespace

CallState::CallState(const CallEnvironment& environment, std::string_view method, const grpc::CallbackServerContext& context)
    : environment_(environment),
      method_(method),
      cancellation_(environment.clock, DeadlineOf(context, environment.clock)),
      bytes_(environment.budget) {}

void CallState::StartJob() { job_end_ns_ = environment_.clock.MonotonicNs() + static_cast<int64_t>(environment_.max_job_seconds * kNsPerSecond); }

absl::Status CallState::Check() const {
  absl::Status status = cancellation_.Check();
  if (!status.ok() || !job_end_ns_ || environment_.clock.MonotonicNs() < *job_end_ns_) return status;
  return MakeError(
      absl::StatusCode::kDeadlineExceeded, absl::StrCat("the computation has reached the limit max_job_seconds = ", environment_.max_job_seconds),
      {.reason = "JOB_TOO_LONG", .metadata = {{"max_job_seconds", absl::StrCat(environment_.max_job_seconds)}}, .quota_subject = "max_job_seconds"});
}

grpc::Status CallState::Failed(const absl::Status& status) const {
  if (IsOurs(status.code())) environment_.failures.OnFailure(method_, status);
  return ToGrpcStatus(status);
}

}  // namespace stepcast::server
