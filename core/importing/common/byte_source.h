// Sources of an import's bytes: read once, from the first to the last, so that nobody has to hold
// them all. Of memory, and of what gzip compressed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
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

// A source whose bytes may be compressed by gzip: hands on what they decompress to, and those that
// are not compressed as they are.
//
// Compressed is what begins with gzip's two bytes, with which nothing begins that is read here;
// several members one after the other are one (RFC 1952). Memory: two blocks, whatever the bytes
// decompress to. Threads: none.
class GunzipSource final : public ByteSource {
 public:
  struct Options {
    // Asked before so many more decompressed bytes are handed on; what it fails with is what Read
    // fails with. So a little that becomes much ends at the limits that the much would have ended
    // at.
    std::function<absl::Status(int64_t more)> admit;
    // The error where the compressed bytes are damaged or cut short, which the text says.
    std::function<absl::Status(const std::string& why)> damaged;
  };

  // The source is borrowed.
  GunzipSource(ByteSource& source, Options options);
  ~GunzipSource() override;
  GunzipSource(const GunzipSource&) = delete;
  GunzipSource& operator=(const GunzipSource&) = delete;

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override;

 private:
  class Inflater;

  absl::Status Fill();
  absl::Status Begin();
  absl::StatusOr<size_t> Inflate(char* buffer, size_t size);

  ByteSource& source_;
  const Options options_;
  std::array<char, size_t{64} << 10> block_;
  size_t at_ = 0;
  size_t size_ = 0;
  bool is_begun_ = false;
  std::unique_ptr<Inflater> inflater_;  // null: the bytes are not compressed
};

}  // namespace stepcast
