// The buffers in which gRPC carries messages.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/status.h"

namespace stepcast::server {

// INVALID_ARGUMENT: reason MESSAGE_TOO_LARGE, with the limit as quota subject, over `max_bytes`;
// reason REQUEST_MALFORMED if the bytes are no such message or are nested deeper than any of the
// contract.
absl::Status ParseMessage(const grpc::ByteBuffer& buffer, int64_t max_bytes,
                          google::protobuf::MessageLite& message);

// INTERNAL, reason REPLY_TOO_LARGE, if it takes 2 GiB or more, which no message may.
absl::Status SerializeMessage(const google::protobuf::MessageLite& message,
                              grpc::ByteBuffer& buffer);

}  // namespace stepcast::server
