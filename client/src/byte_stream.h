// Bytes that are sent piece by piece, and once more from the start for each further attempt.
//
// Threads: none; one call at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepcast::client {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Goes back to the first byte.
  virtual absl::Status Rewind() = 0;
  // Puts up to `size` of the next bytes into `buffer` and says how many: 0 at the end, and only
  // there. REQUIRES: size > 0.
  virtual absl::StatusOr<size_t> Read(char* buffer, size_t size) = 0;
};

// Bytes in memory. Borrows them.
class TextStream final : public ByteStream {
 public:
  explicit TextStream(std::string_view text) : text_(text) {}

  absl::Status Rewind() override {
    at_ = 0;
    return absl::OkStatus();
  }
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    const size_t taken = std::min(size, text_.size() - at_);
    if (taken > 0) std::memcpy(buffer, text_.data() + at_, taken);
    at_ += taken;
    return taken;
  }

 private:
  const std::string_view text_;
  size_t at_ = 0;
};

// The streams that follow the header of an import. Borrowed.
struct ImportStreams {
  ByteStream& recording;
  ByteStream* graph = nullptr;  // null: none
  // Of several workers, at least two, with their names; `recording` is the first of them then.
  std::vector<std::pair<ByteStream*, std::string>> recordings = {};
  // As RecordingFiles::on_read.
  std::function<void(int64_t bytes)> on_read = {};
};

}  // namespace stepcast::client
