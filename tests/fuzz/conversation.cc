#include "tests/fuzz/conversation.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/slice.h>

#include <limits>
#include <utility>

namespace stepcast::fuzz {

std::shared_ptr<Conversation> Conversation::Begin(
    const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
    std::optional<std::chrono::milliseconds> deadline) {
  std::shared_ptr<Conversation> begun(new Conversation);
  begun->self_ = begun;
  if (deadline) begun->context_.set_deadline(std::chrono::system_clock::now() + *deadline);
  grpc::GenericStub stub(channel);
  stub.PrepareBidiStreamingCall(&begun->context_, method, {}, begun.get());
  // Others than reactions start operations.
  begun->AddHold();
  begun->StartCall();
  return begun;
}

void Conversation::Send(const std::string& message) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_last_) return;
    const grpc::Slice slice(message);
    outgoing_.emplace_back(&slice, 1);
  }
  Go();
}

void Conversation::HalfClose() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_last_ = true;
  }
  Go();
}

void Conversation::Cancel() { context_.TryCancel(); }

void Conversation::Read(size_t count) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    to_read_ += count;
  }
  Go();
}

bool Conversation::AwaitMessages(size_t count, std::chrono::milliseconds patience) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, patience,
                           [&] { return is_done_ || is_read_ || end_.count >= count; });
}

std::optional<Conversation::End> Conversation::AwaitEnd(std::chrono::milliseconds patience) {
  bool is_held = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_last_ = true;
    to_read_ = std::numeric_limits<size_t>::max();
    is_held = std::exchange(is_held_, false);
  }
  if (is_held) {
    Go();
    RemoveHold();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  if (!changed_.wait_for(lock, patience, [&] { return is_done_; })) return std::nullopt;
  return end_;
}

void Conversation::Go() {
  const grpc::ByteBuffer* next = nullptr;
  bool closes = false;
  bool reads = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_writing_ && !is_broken_ && !outgoing_.empty()) {
      is_writing_ = true;
      next = &outgoing_.front();
    } else if (!is_writing_ && !is_broken_ && is_last_ && !is_half_closed_) {
      is_writing_ = is_half_closed_ = closes = true;
    }
    if (!is_reading_ && !is_read_ && to_read_ > 0) {
      --to_read_;
      is_reading_ = reads = true;
    }
  }
  if (next != nullptr) StartWrite(next);
  if (closes) StartWritesDone();
  if (reads) StartRead(&incoming_);
}

void Conversation::OnWriteDone(bool ok) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    outgoing_.pop_front();
    is_writing_ = false;
    is_broken_ = !ok;
  }
  Go();
}

void Conversation::OnWritesDoneDone(bool /*ok*/) {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_writing_ = false;
}

void Conversation::OnReadDone(bool ok) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_reading_ = false;
    is_read_ = !ok;
    if (ok) {
      ++end_.count;
      kept_bytes_ += incoming_.Length();
      if (kept_bytes_ <= kKeptBytes) {
        std::string& text = end_.messages.emplace_back();
        std::vector<grpc::Slice> slices;
        if (incoming_.Dump(&slices).ok()) {
          for (const grpc::Slice& slice : slices)
            text.append(static_cast<const char*>(static_cast<const void*>(slice.begin())),
                        slice.size());
        }
      }
    }
    changed_.notify_all();
  }
  Go();
}

void Conversation::OnDone(const grpc::Status& status) {
  std::shared_ptr<Conversation> self;  // outlives the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  end_.status = status;
  is_done_ = true;
  self = std::move(self_);
  changed_.notify_all();
}

}  // namespace stepcast::fuzz
