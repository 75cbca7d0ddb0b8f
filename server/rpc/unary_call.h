// One unary call: a reactor that hands its work to job pools, part after part, and writes the
// reply.
//
// Request and reply are raw bytes, so that parsing a large one does not hold up gRPC's own threads,
// and so that malformed ones are refused as every other bad request is. Lifetime: deletes itself
// when gRPC is done with it; not to be touched after Finish. Threads: the parts run one after the
// other; cancellation may come at any time.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/jobs/flights.h"
#include "server/jobs/job_pool.h"
#include "server/rpc/call_state.h"
#include "server/rpc/recent_answers.h"

namespace stepcast::server {

// A unary call as gRPC hands it over.
struct UnaryWire {
  std::string_view method;  // GetProfile
  grpc::CallbackServerContext* context;
  const grpc::ByteBuffer* request;
  grpc::ByteBuffer* reply;
};

class UnaryCall final : public grpc::ServerUnaryReactor, public Waiter<SharedReplyPointer> {
 public:
  // A part of the work. Ends with exactly one of Reply, Fail and SharedAnswers::Answer.
  using Part = absl::AnyInvocable<void(UnaryCall&) &&>;

  // `service`: stepcast.v1.ProfileService.
  UnaryCall(const CallEnvironment& environment, std::string_view service, const UnaryWire& wire);

  // `prefix` and the request's bytes, where these are no more than `max_bytes`; else empty.
  std::string BytesAfter(std::string prefix, size_t max_bytes) const;
  // Runs the first part on the pool for the store, unless the caller is not admitted or the
  // requests under way hold too many bytes already.
  void Start(Part part);

  absl::Status Read(google::protobuf::Message& message);
  void Reply(const google::protobuf::MessageLite& message);
  void Reply(const grpc::ByteBuffer& bytes);
  void Fail(const absl::Status& status);

  CallState& state() { return state_; }

  // As one that waits for a shared answer.
  absl::Status Check() const override { return state_.Check(); }
  void Tell(const absl::StatusOr<SharedReplyPointer>& result, bool is_first) override;

  void OnCancel() override { state_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  CallState state_;
  const grpc::ByteBuffer& request_;
  grpc::ByteBuffer& reply_;
};

// Has `part` end a new call, with the parsed request, on the pool for the store.
template <typename Request, typename Part>
UnaryCall* StartUnary(const CallEnvironment& environment, std::string_view service,
                      const UnaryWire& wire, Part part) {
  auto* call = new UnaryCall(environment, service, wire);
  call->Start([part = std::move(part)](UnaryCall& started) {
    Request message;
    const absl::Status parsed = started.Read(message);
    if (!parsed.ok()) return started.Fail(parsed);
    part(started, message);
  });
  return call;
}

}  // namespace stepcast::server
