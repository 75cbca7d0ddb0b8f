// The memory that bytes take once they are parsed: two bytes on the wire may be a message of
// hundreds.
//
// An estimate, by the number of messages, numbers and texts in them. Threads: pure functions.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string_view>

namespace stepcast::server {

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
