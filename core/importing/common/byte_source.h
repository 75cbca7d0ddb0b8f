// A source of an import's bytes: read once, from the first to the last, so that nobody has to hold
// them all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "absl/status/statusor.h"

namespace stepcast {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Puts up to `size` of the next bytes into `buffer` and says how many: 0 at the end, and only
  // there. Fails with what keeps it from reading on. REQUIRES: size > 0.
  virtual absl::StatusOr<size_t> Read(char* buffer, size_t size) = 0;
};

// Bytes that are in memory anyway. Borrows them.
class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : rest_(text) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    const size_t taken = std::min(size, rest_.size());
    if (taken > 0) std::memcpy(buffer, rest_.data(), taken);
    rest_.remove_prefix(taken);
    return taken;
  }

 private:
  std::string_view rest_;
};

}  // namespace stepcast
