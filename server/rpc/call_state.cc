#include "server/rpc/call_state.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/convert/known_fields.h"
#include "server/rpc/call_metadata.h"
#include "server/rpc/grpc_wire.h"
#include "server/rpc/parsed_bytes.h"

namespace stepcast::server {

JobLimit::JobLimit(const CallEnvironment& environment)
    : clock_(&environment.clock),
      max_seconds_(environment.max_job_seconds),
      end_ns_(clock_->MonotonicNs() + static_cast<int64_t>(max_seconds_ * kNsPerSecond)) {}

absl::Status JobLimit::Check() const {
  if (clock_->MonotonicNs() < end_ns_) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kDeadlineExceeded,
      absl::StrCat("the computation has reached the limit max_job_seconds = ", max_seconds_),
      {.reason = "JOB_TOO_LONG",
       .metadata = {{"max_job_seconds", absl::StrCat(max_seconds_)}},
       .quota_subject = "max_job_seconds"});
}

namespace {

constexpr int64_t kLongestNs = int64_t{1} << 61;

// The deadline on the clock's monotonic time; none where the caller set none.
std::optional<int64_t> DeadlineOf(const grpc::CallbackServerContext& context, const Clock& clock) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return std::nullopt;
  const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
                        deadline - std::chrono::system_clock::now())
                        .count();
  return left > kLongestNs ? std::nullopt : std::optional<int64_t>(clock.MonotonicNs() + left);
}

// The time at which to give up, so that why arrives while the caller still waits: a twentieth of
// the time that is left, at most 250 ms, before the deadline.
std::optional<int64_t> EndOf(std::optional<int64_t> deadline_ns, const Clock& clock) {
  constexpr int64_t kMaxNs = 250'000'000;
  constexpr int64_t kPart = 20;
  if (!deadline_ns) return std::nullopt;
  return *deadline_ns -
         std::clamp<int64_t>((*deadline_ns - clock.MonotonicNs()) / kPart, 0, kMaxNs);
}

}  // namespace

bool IsServersFault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss || code == absl::StatusCode::kUnavailable;
}

CallState::CallState(const CallEnvironment& environment, const CalledMethod& method,
                     const grpc::CallbackServerContext& context)
    : environment_(environment),
      method_(method),
      context_(context),
      deadline_ns_(DeadlineOf(context, environment.clock)),
      cancellation_(environment.clock, EndOf(deadline_ns_, environment.clock)),
      bytes_(environment.budget) {
  absl::StatusOr<std::shared_ptr<const Caller>> caller = environment.gate.Admit(method, context);
  admitted_ = caller.status();
  if (caller.ok()) caller_ = *std::move(caller);
}

absl::Status CallState::Check() const {
  absl::Status status = cancellation_.Check();
  return status.ok() && job_limit_ ? job_limit_->Check() : status;
}

absl::Status CallState::CountParsed(int64_t size, int64_t parsed, ByteBudget::Share& share) const {
  const int64_t max_bytes = environment_.budget.max();
  if (parsed <= max_bytes) return share.Add(parsed - std::min(size, parsed));
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat(
          "the messages and numbers in ", size,
          " bytes take more memory than all requests may: max_pending_bytes = ", max_bytes),
      {.reason = "MESSAGE_TOO_LARGE",
       .metadata = {{"bytes", absl::StrCat(size)}, {"max_pending_bytes", absl::StrCat(max_bytes)}},
       .quota_subject = "max_pending_bytes"});
}

absl::Status CallState::Read(const grpc::ByteBuffer& buffer, google::protobuf::Message& message,
                             ByteBudget::Share& share) const {
  const auto size = static_cast<int64_t>(buffer.Length());
  if (size >= kMinBytesToLookAt && size <= environment_.max_message_bytes) {
    const int64_t parsed = ParsedBytes(buffer, *message.GetDescriptor(), environment_.budget.max());
    if (absl::Status counted = CountParsed(size, parsed, share); !counted.ok()) return counted;
  }
  if (absl::Status parsed = ParseMessage(buffer, environment_.max_message_bytes, message);
      !parsed.ok())
    return parsed;
  return CheckFieldsAreKnown(message);
}

JobTicket CallState::Ticket(const ExpectedWork& work) const {
  double seconds = environment_.costs.ExpectedSeconds(
      {.group = work.method, .kind = work.profile, .size = work.operations});
  if (seconds == 0) seconds = work.operations * kMinSecondsPerOperation;
  if (work.most_seconds > 0) seconds = std::min(seconds, work.most_seconds);
  seconds = std::min(seconds, environment_.max_job_seconds);
  return {.client = ClientOf(caller_.get(), context_),
          .method = work.method,
          .request_id = RequestIdOf(context_),
          .expected_seconds = seconds,
          .deadline_ns = deadline_ns_};
}

CallLabels CallState::Labels() const {
  return {.method = method_.name,
          .client = ClientOf(caller_.get(), context_),
          .request_id = RequestIdOf(context_),
          .trace_id = TraceIdOf(context_)};
}

grpc::Status CallState::Failed(const absl::Status& status) const {
  if (status.ok()) return Succeeded(), grpc::Status::OK;
  // Who was not admitted has been counted by the gate's observer.
  if (admitted_.ok()) environment_.rejections.OnFailure(DetailsOf(status).reason);
  if (IsServersFault(status.code()) || environment_.observer.WantsEveryCall())
    environment_.observer.OnEnd(Labels(), status);
  return ToGrpcStatus(status);
}

void CallState::Succeeded() const {
  if (environment_.observer.WantsEveryCall())
    environment_.observer.OnEnd(Labels(), absl::OkStatus());
}

}  // namespace stepcast::server
