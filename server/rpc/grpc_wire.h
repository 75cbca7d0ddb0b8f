// Failures and messages in the form in which gRPC carries them.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <cstdint>

#include "absl/status/status.h"

namespace stepcast::server {

// The one way a failure leaves the service: the same code, with message and details as ToWireError
// bounds them. OK for OK.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Reads the message in a buffer. INVALID_ARGUMENT: reason MESSAGE_TOO_LARGE over `max_bytes`, with
// the limit's name, the server's option or another, as quota subject; reason REQUEST_MALFORMED if
// the bytes are no such message or are nested deeper than any of the contract.
absl::Status ParseMessage(const grpc::ByteBuffer& buffer, int64_t max_bytes,
                          google::protobuf::MessageLite& message,
                          const char* limit = "max_message_bytes");

// Replaces what the buffer holds. INTERNAL, reason REPLY_TOO_LARGE, if the message takes 2 GiB or
// more, which no message may.
absl::Status SerializeMessage(const google::protobuf::MessageLite& message,
                              grpc::ByteBuffer& buffer);

}  // namespace stepcast::server
