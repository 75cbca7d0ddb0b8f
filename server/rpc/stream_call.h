// One call that is answered by a stream: a reactor that hands its work to job pools, part after
// part, and writes what they give it.
//
// Back-pressure: kMaxWaiting messages wait for the caller to take them; with so many, Write blocks
// the job's thread. Request, lifetime and threads: as UnaryCall. A part must not touch the call
// after End.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <deque>
#include <optional>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include "server/base/mutex.h"
#include "server/handlers/expected_work.h"
#include "server/rpc/call_state.h"

namespace stepcast::server {

class StreamCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  static constexpr size_t kMaxWaiting = 4;

  // A part of the work. Ends with exactly one of End and Compute.
  using Part = absl::AnyInvocable<void(StreamCall&) &&>;

  StreamCall(const CallEnvironment& environment, const CalledMethod& method,
             const grpc::CallbackServerContext& context, const grpc::ByteBuffer& request);

  // Runs the first part on the pool for the store, unless the caller is not admitted or the
  // requests under way hold too many bytes already.
  void Start(Part part);
  // Runs `part` on the pool for simulations, unless that refuses it or the caller has gone
  // meanwhile: then the call ends.
  void Compute(const ExpectedWork& work, Part part);

  absl::Status Read(google::protobuf::Message& message);
  // Waits until there is room, and hands the message on. Failure: what CallState::Check says,
  // CANCELLED for a broken stream.
  absl::Status Write(const google::protobuf::MessageLite& message);
  // Ends the call. Messages that were handed on are written before an OK; before any other status
  // they are dropped.
  void End(const absl::Status& status);

  CallState& state() { return state_; }

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  enum class Admission { kTaken, kFull, kBroken };

  // Moves from `message` only if it is taken. Where there is no room, waits a while for some.
  Admission Enqueue(grpc::ByteBuffer& message);

  CallState state_;
  const grpc::ByteBuffer& request_;
  Mutex mutex_;
  CondVar changed_;  // there is room, or never will be
  // The first one is being written if `writing_`; gRPC takes one at a time.
  std::deque<grpc::ByteBuffer> waiting_ STEPCAST_GUARDED_BY(mutex_);
  bool writing_ STEPCAST_GUARDED_BY(mutex_) = false;
  bool broken_ STEPCAST_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> end_ STEPCAST_GUARDED_BY(mutex_);
};

}  // namespace stepcast::server
