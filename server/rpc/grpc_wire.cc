#include "server/rpc/grpc_wire.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <limits>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/convert/wire_error.h"

namespace stepcast::server {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const WireError error = ToWireError(status);
  // absl's codes are the canonical ones, as gRPC's are.
  return {static_cast<grpc::StatusCode>(status.code()), error.message, error.details};
}

namespace {

// The contract's messages are six deep.
constexpr int kMaxNesting = 16;

absl::Status Malformed(const google::protobuf::MessageLite& message) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      absl::StrCat("the bytes of the request are no ", message.GetTypeName()),
      {.reason = "REQUEST_MALFORMED", .metadata = {{"message", message.GetTypeName()}}});
}

}  // namespace

absl::Status ParseMessage(const grpc::ByteBuffer& buffer, int64_t max_bytes,
                          google::protobuf::MessageLite& message, const char* limit) {
  const auto size = static_cast<int64_t>(buffer.Length());
  if (size > max_bytes) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        absl::StrCat("a message of ", size, " bytes is above the limit ", limit, " = ", max_bytes),
        {.reason = "MESSAGE_TOO_LARGE",
         .metadata = {{"bytes", absl::StrCat(size)}, {limit, absl::StrCat(max_bytes)}},
         .quota_subject = limit});
  }
  grpc::ByteBuffer copy(buffer);  // of references; reading needs one that may change
  grpc::ProtoBufferReader reader(&copy);
  if (!reader.status().ok()) return Malformed(message);
  google::protobuf::io::CodedInputStream stream(&reader);
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  stream.SetRecursionLimit(kMaxNesting);
  if (!message.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return Malformed(message);
  return absl::OkStatus();
}

absl::Status SerializeMessage(const google::protobuf::MessageLite& message,
                              grpc::ByteBuffer& buffer) {
  constexpr int kBlockBytes = 1 << 20;
  const size_t size = message.ByteSizeLong();
  // The writer aborts the process on a buffer that holds something.
  buffer.Clear();
  if (size <= static_cast<size_t>(std::numeric_limits<int>::max())) {
    grpc::ProtoBufferWriter writer(&buffer, kBlockBytes, static_cast<int>(size));
    if (message.SerializeToZeroCopyStream(&writer)) return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kInternal,
                   absl::StrCat("a reply of ", size, " bytes cannot be sent"),
                   {.reason = "REPLY_TOO_LARGE"});
}

}  // namespace stepcast::server
