#include "server/rpc/calls.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/convert/any_message.h"
#include "server/rpc/grpc_wire.h"

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
      end_ns_(EndOf(deadline_ns_, environment.clock)),
      cancellation_(environment.clock, end_ns_),
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

std::string CallState::client() const { return ClientOf(caller_.get(), context_); }

JobTicket CallState::Ticket(const ExpectedWork& work) const {
  double seconds = environment_.costs.ExpectedSeconds(
      {.group = work.method, .kind = work.profile, .size = work.operations});
  if (seconds == 0) seconds = work.operations * kMinSecondsPerOperation;
  if (work.most_seconds > 0) seconds = std::min(seconds, work.most_seconds);
  seconds = std::min(seconds, environment_.max_job_seconds);
  return {.client = client(),
          .method = work.method,
          .request_id = RequestIdOf(context_),
          .expected_seconds = seconds,
          .deadline_ns = deadline_ns_};
}

CallLabels CallState::Labels() const {
  return {.method = method_.name,
          .client = client(),
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

UnaryCall::UnaryCall(const CallEnvironment& environment, std::string_view service,
                     const UnaryWire& wire)
    : state_(environment, {.service = service, .name = wire.method}, *wire.context),
      request_(*wire.request),
      reply_(*wire.reply) {}

void UnaryCall::Start(Part part) {
  if (!state_.admitted().ok()) return Fail(state_.admitted());
  const absl::Status counted = state_.bytes().Add(static_cast<int64_t>(request_.Length()));
  if (!counted.ok()) return Fail(counted);
  const absl::Status submitted =
      state_.environment().store_jobs.Submit([this, part = std::move(part)]() mutable {
        const absl::Status go_on = state_.Check();
        if (!go_on.ok()) return Fail(go_on);
        std::move(part)(*this);
      });
  // Once taken, the call may be over already.
  if (!submitted.ok()) Fail(submitted);
}

std::string UnaryCall::BytesAfter(std::string prefix, size_t max_bytes) const {
  const size_t length = request_.Length();
  if (length > max_bytes) return "";
  prefix.reserve(prefix.size() + length);
  // Mostly it came in one piece.
  if (grpc::Slice whole; request_.TrySingleSlice(&whole).ok())
    return prefix.append(reinterpret_cast<const char*>(whole.begin()), whole.size());
  std::vector<grpc::Slice> slices;
  if (!request_.Dump(&slices).ok()) return "";
  for (const grpc::Slice& slice : slices)
    prefix.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return prefix;
}

absl::Status UnaryCall::Read(google::protobuf::Message& message) {
  return state_.Read(request_, message, state_.bytes());
}

void UnaryCall::Reply(const google::protobuf::MessageLite& message) {
  const absl::Status written = SerializeMessage(message, reply_);
  if (!written.ok()) return Fail(written);
  state_.bytes().Release();
  state_.Succeeded();
  Finish(grpc::Status::OK);
}

void UnaryCall::Reply(const grpc::ByteBuffer& bytes) {
  reply_ = bytes;
  state_.bytes().Release();
  state_.Succeeded();
  Finish(grpc::Status::OK);
}

void UnaryCall::Tell(const absl::StatusOr<SharedReplyPointer>& result, bool is_first) {
  if (!result.ok()) return Fail(result.status());
  Reply(is_first ? (*result)->computed : (*result)->shared);
}

void UnaryCall::Fail(const absl::Status& status) {
  state_.bytes().Release();
  Finish(state_.Failed(status));
}

namespace {

// The interval at which a job that waits for room asks whether to go on: a caller that is gone
// wakes it, the end of its time does not.
constexpr std::chrono::milliseconds kCheckInterval{5};

}  // namespace

StreamCall::StreamCall(const CallEnvironment& environment, const CalledMethod& method,
                       const grpc::CallbackServerContext& context, const grpc::ByteBuffer& request)
    : state_(environment, method, context), request_(request) {}

void StreamCall::Start(Part part) {
  if (!state_.admitted().ok()) return End(state_.admitted());
  const absl::Status counted = state_.bytes().Add(static_cast<int64_t>(request_.Length()));
  if (!counted.ok()) return End(counted);
  const absl::Status submitted =
      state_.environment().store_jobs.Submit([this, part = std::move(part)]() mutable {
        const absl::Status go_on = state_.Check();
        if (!go_on.ok()) return End(go_on);
        std::move(part)(*this);
      });
  // Once taken, the call may be over already.
  if (!submitted.ok()) End(submitted);
}

void StreamCall::Compute(const ExpectedWork& work, Part part) {
  JobTicket ticket = state_.Ticket(work);
  ticket.end_ns = state_.end_ns();
  const absl::Status submitted = state_.environment().simulation_jobs.Submit(
      std::move(ticket), [this, part = std::move(part)](const absl::Status& taken) mutable {
        const absl::Status go_on = taken.ok() ? state_.Check() : taken;
        if (!go_on.ok()) return End(go_on);
        std::move(part)(*this);
      });
  if (!submitted.ok()) End(submitted);
}

absl::Status StreamCall::Read(google::protobuf::Message& message) {
  return state_.Read(request_, message, state_.bytes());
}

absl::Status StreamCall::Write(const google::protobuf::MessageLite& message) {
  grpc::ByteBuffer buffer;
  absl::Status status = SerializeMessage(message, buffer);
  while (status.ok()) {
    const Admission admission = Enqueue(buffer);
    if (admission == Admission::kTaken) break;
    status = state_.Check();
    if (status.ok() && admission == Admission::kBroken) {
      status =
          MakeError(absl::StatusCode::kCancelled, "the stream is broken", {.reason = "CANCELLED"});
    }
  }
  return status;
}

StreamCall::Admission StreamCall::Enqueue(grpc::ByteBuffer& message) {
  const grpc::ByteBuffer* first = nullptr;
  {
    MutexLock lock(mutex_);
    if (waiting_.size() >= kMaxWaiting && !broken_) changed_.WaitFor(mutex_, kCheckInterval);
    if (broken_) return Admission::kBroken;
    if (waiting_.size() >= kMaxWaiting) return Admission::kFull;
    waiting_.push_back(std::move(message));
    if (!std::exchange(writing_, true)) first = &waiting_.front();
  }
  if (first != nullptr) StartWrite(first);
  return Admission::kTaken;
}

void StreamCall::OnWriteDone(bool ok) {
  const grpc::ByteBuffer* next = nullptr;
  std::optional<grpc::Status> end;
  {
    MutexLock lock(mutex_);
    waiting_.pop_front();
    if (!ok) {
      broken_ = true;
      waiting_.clear();
    }
    writing_ = !waiting_.empty();
    if (writing_) {
      next = &waiting_.front();
    } else {
      end = end_;
    }
  }
  changed_.NotifyAll();
  if (next != nullptr) StartWrite(next);
  if (end) Finish(*end);
}

void StreamCall::OnCancel() {
  state_.Cancel();
  changed_.NotifyAll();
}

void StreamCall::End(const absl::Status& status) {
  state_.bytes().Release();
  const grpc::Status end = state_.Failed(status);
  {
    MutexLock lock(mutex_);
    if (!status.ok()) waiting_.resize(writing_ ? 1 : 0);
    // Else whoever is told of the end of the last write ends the call, perhaps before this returns.
    if (writing_) {
      end_ = end;
      return;
    }
  }
  Finish(end);
}

}  // namespace stepcast::server
