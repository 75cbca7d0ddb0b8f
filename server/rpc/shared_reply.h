// The bytes of an answer, for the call that it was computed for and for all others.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>

namespace stepcast::server {

struct SharedReply {
  grpc::ByteBuffer computed;
  grpc::ByteBuffer shared;  // says that it is `cached`
};

using SharedReplyPointer = std::shared_ptr<const SharedReply>;

}  // namespace stepcast::server
