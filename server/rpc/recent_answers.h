// A cache of answers by the very bytes of their requests: a caller who asks the same again gets one
// without anything being parsed, looked up or queued.
//
// In front of SharedAnswers, which finds an answer by what the request means. An answer stands as
// long as names mean what they meant: it is kept with the generation of the store that was read
// before its profile was, and is no answer under any other (ProfileStore::Generation). Requests
// above kMaxRequestBytes are not kept. Cost: a hash of the request and a lock, about as much as a
// call's metadata. Threads: safe.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "server/base/bounded_cache.h"

namespace stepcast::server {

// The bytes of an answer, for the call that it was computed for and for all others.
struct SharedReply {
  grpc::ByteBuffer computed;
  grpc::ByteBuffer shared;  // says that it is `cached`
};

using SharedReplyPointer = std::shared_ptr<const SharedReply>;

class RecentAnswers {
 public:
  static constexpr size_t kMaxRequestBytes = 4096;

  // `observer` is borrowed; may be null.
  RecentAnswers(size_t max_bytes, CacheObserver* observer) : answers_(max_bytes, observer) {}

  // Null where there is none for this generation. `key`: the method and the request's bytes.
  SharedReplyPointer Find(const std::string& key, uint64_t generation) {
    const auto found = answers_.Find(key);
    return found != nullptr && found->generation == generation ? found->reply : nullptr;
  }

  void Keep(const std::string& key, SharedReplyPointer reply, uint64_t generation) {
    const size_t bytes = reply->shared.Length();
    answers_.Keep(
        key,
        std::make_shared<const Answer>(Answer{.reply = std::move(reply), .generation = generation}),
        bytes);
  }

 private:
  struct Answer {
    SharedReplyPointer reply;
    uint64_t generation = 0;
  };

  BoundedCache<Answer> answers_;
};

}  // namespace stepcast::server
