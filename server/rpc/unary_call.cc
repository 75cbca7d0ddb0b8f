#include "server/rpc/unary_call.h"

#include <utility>
#include <vector>

#include "server/rpc/grpc_wire.h"

namespace stepcast::server {

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

}  // namespace stepcast::server
