// The messages between a worker and a parameter server: raw bytes, as large as the tensor, after or
// before a few numbers.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace stepcast::testbed {

// A download asks for so many bytes; the reply is those.
inline constexpr char kDownloadMethod[] = "/stepcast.testbed.ParameterServer/Download";
// An upload is an UploadHeader and a tensor; the reply, once the update is done, an UploadReply.
inline constexpr char kUploadMethod[] = "/stepcast.testbed.ParameterServer/Upload";

struct DownloadRequest {
  int64_t size_bytes = 0;
};

struct UploadHeader {
  int32_t worker = 0;
  int64_t update_ns = 0;  // how long the update is to take
};

// All on the monotonic clock.
struct UploadReply {
  int64_t received_ns = 0;
  int64_t update_start_ns = 0;
  int64_t update_end_ns = 0;
};

// The largest tensor a testbed sends.
inline constexpr size_t kMaxTensorBytes = size_t{1} << 28;

// Bytes of no meaning, borrowed from one block that lives as long as the process.
inline grpc::Slice TensorOf(int64_t size_bytes) {
  static const std::vector<char>& block = *new std::vector<char>(kMaxTensorBytes);
  return {block.data(), static_cast<size_t>(size_bytes), grpc::Slice::STATIC_SLICE};
}

template <typename Message>
grpc::Slice SliceOf(const Message& message) {
  return {&message, sizeof(message)};
}

// The message at the start of the buffer; false where it is shorter.
template <typename Message>
bool ReadFrom(const grpc::ByteBuffer& buffer, Message& message) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return false;
  char bytes[sizeof(Message)];
  size_t read = 0;
  for (const grpc::Slice& slice : slices) {
    const size_t part = std::min(slice.size(), sizeof(Message) - read);
    std::memcpy(bytes + read, slice.begin(), part);
    read += part;
    if (read == sizeof(Message)) break;
  }
  if (read < sizeof(Message)) return false;
  std::memcpy(&message, bytes, sizeof(Message));
  return true;
}

}  // namespace stepcast::testbed
