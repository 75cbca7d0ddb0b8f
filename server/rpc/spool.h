// A spool of bytes that come in pieces and are read once all of them are there: in memory while
// they are few, then in a file that nobody else sees.
//
// The file has no name: it is gone with the spool, or with the process, however that ends.
// Failure: RESOURCE_EXHAUSTED, reason DISK_FULL, where the directory's disk is full; UNAVAILABLE,
// reason SPOOL_UNAVAILABLE, where it takes no more for another reason. Threads: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "core/importing/common/byte_source.h"

namespace stepcast::server {

class Spool {
 public:
  // So many bytes a spool keeps in memory; what is larger is written to its file from the first
  // byte on.
  static constexpr size_t kMemoryBytes = size_t{4} << 20;

  // `directory`: for the file, if one is needed.
  explicit Spool(std::string directory) : directory_(std::move(directory)) {}
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  absl::Status Append(std::string_view bytes);
  int64_t size() const { return size_; }
  bool in_memory() const { return file_ < 0; }

  // Reads from the first byte on. Borrows the spool, to which nothing may be appended meanwhile.
  std::unique_ptr<ByteSource> Read() const;

 private:
  absl::Status MoveToFile();
  absl::Status Write(std::string_view bytes) const;
  absl::Status Failed(const char* doing, int error) const;

  const std::string directory_;
  std::string memory_;
  int file_ = -1;  // descriptor; -1: all is in memory
  int64_t size_ = 0;
};

}  // namespace stepcast::server
