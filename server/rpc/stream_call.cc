#include "server/rpc/stream_call.h"

#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "server/rpc/grpc_wire.h"

namespace stepcast::server {

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
  const absl::Status submitted = state_.environment().simulation_jobs.Submit(
      state_.Ticket(work), [this, part = std::move(part)](const absl::Status& taken) mutable {
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
