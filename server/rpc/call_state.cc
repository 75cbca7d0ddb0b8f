#include "server/rpc/call_state.h"

#include <chrono>
#include <utility>

#include "server/rpc/grpc_status.h"

namespace stepcast::server {

namespace {

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

CallState::CallState(const CallEnvironment& environment, const CalledMethod& method, const grpc::CallbackServerContext& context)
    : environment_(environment),
      method_(method),
      context_(context),
      cancellation_(environment.clock, DeadlineOf(context, environment.clock)),
      bytes_(environment.budget) {
  absl::StatusOr<std::shared_ptr<const Caller>> caller = environment.gate.Admit(method, context);
  admitted_ = caller.status();
  if (caller.ok()) caller_ = *std::move(caller);
}

absl::Status CallState::Check() const {
  absl::Status status = cancellation_.Check();
  return status.ok() && job_limit_ ? job_limit_->Check() : status;
}

grpc::Status CallState::Failed(const absl::Status& status) const {
  if (IsOurs(status.code())) environment_.failures.OnFailure(method_.name, status);
  return ToGrpcStatus(status);
}

}  // namespace stepcast::server
