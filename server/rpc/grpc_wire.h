// Failures, messages and metadata in the form in which gRPC carries them, and the memory that
// messages take once they are parsed.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message_lite.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <cstdint>
#include <string>
#include <string_view>

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

// The metadata of a call: what its caller says of it, for logs and listings.
//
// It is the caller's text: what is not printable ASCII, or too long, counts as absent.
// Threads: safe for one call.
// Cost: gRPC makes a map of the metadata at the first question.

inline constexpr size_t kMaxRequestIdBytes = 128;

// The request id, from `x-request-id`.
std::string RequestIdOf(const grpc::CallbackServerContext& context);
// The 32 hexadecimal digits of the trace in `traceparent`, version 00 or later
// (https://www.w3.org/TR/trace-context/, section 3.2); all zeros is none.
std::string TraceIdOf(const grpc::CallbackServerContext& context);

// The same of their texts.
std::string CleanRequestId(std::string text);
std::string TraceIdIn(const std::string& traceparent);

// The memory that bytes take once they are parsed: two bytes on the wire may be a message of
// hundreds.
//
// An estimate, by the number of messages, numbers and texts in them. Threads: pure functions.

// Fewer bytes are not worth a look: they take no more than some megabytes.
inline constexpr int64_t kMinBytesToLookAt = 64 << 10;

// The memory of a message of this type, with the draft that is made of it. Bytes that are not one
// count as far as they are. Cost: one look at each field; ends soon after it has passed `enough`.
int64_t ParsedBytes(const grpc::ByteBuffer& buffer, const google::protobuf::Descriptor& type,
                    int64_t enough);
int64_t ParsedBytes(std::string_view bytes, const google::protobuf::Descriptor& type,
                    int64_t enough);

// The memory of a message in JSON or protobuf's text format, by its brackets and separators.
int64_t ParsedBytesOfText(std::string_view text);

}  // namespace stepcast::server
