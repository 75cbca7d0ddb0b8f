// One call of any method from its client's side: what is sent waits until the call takes it, and
// what comes is read as far as it was asked for, so that a client may stop in the middle of
// anything.
//
// Threads: one owner; gRPC's own threads do what it asked for. Lifetime: owned by a shared pointer,
// of which gRPC has one until the call is over.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace stepcast::fuzz {

class Conversation final : private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // The end of a call. Messages beyond the first kKeptBytes of all are counted only.
  struct End {
    grpc::Status status;
    std::vector<std::string> messages;
    size_t count = 0;  // of messages
  };
  static constexpr size_t kKeptBytes = 1 << 20;

  // `method`: /service/method; `deadline`: from now.
  static std::shared_ptr<Conversation> Begin(const std::shared_ptr<grpc::Channel>& channel,
                                             const std::string& method,
                                             std::optional<std::chrono::milliseconds> deadline);

  // Ignored after HalfClose.
  void Send(const std::string& message);
  void HalfClose();
  void Cancel();
  // Lets so many more messages come.
  void Read(size_t count);
  // False: they did not come in this time, nor did the end.
  bool AwaitMessages(size_t count, std::chrono::milliseconds patience);
  // Closes its half, reads all there is, and returns the end; none: it did not come in this time.
  // Nothing may be asked for afterwards but Cancel and this.
  std::optional<End> AwaitEnd(std::chrono::milliseconds patience);

 private:
  Conversation() = default;

  // Starts what can be done next.
  void Go();
  void OnWriteDone(bool ok) override;
  void OnWritesDoneDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  grpc::ClientContext context_;
  grpc::ByteBuffer incoming_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // All below are guarded by the mutex.
  std::deque<grpc::ByteBuffer> outgoing_;  // the first one is being written if is_writing_
  bool is_writing_ = false;
  bool is_broken_ = false;  // nothing more can be written
  bool is_last_ = false;    // what there is, is all there will be
  bool is_half_closed_ = false;
  size_t to_read_ = 0;
  bool is_reading_ = false;
  bool is_read_ = false;  // nothing more will come
  bool is_held_ = true;
  size_t kept_bytes_ = 0;
  End end_;
  bool is_done_ = false;
  std::shared_ptr<Conversation> self_;  // until the call is over
};

}  // namespace stepcast::fuzz
