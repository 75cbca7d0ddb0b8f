// Bytes that are sent piece by piece, of memory or of a file.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepcast::client {

// Bytes that are sent piece by piece, and once more from the start for each further attempt.
//
// Threads: none; one call at a time.
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
  // Streams of several workers, at least two, with their names; `recording` is the first then.
  std::vector<std::pair<ByteStream*, std::string>> recordings = {};
  // See RecordingFiles::on_read.
  std::function<void(int64_t bytes)> on_read = {};
};

// A file to read: a path, or standard input.
struct FileToRead {
  std::string path;
  bool is_standard_input = false;  // the path means nothing then

  // The name in messages.
  std::string Name() const { return is_standard_input ? "standard input" : path; }
};

// The reason why a file cannot be read, as it is found without reading it: "it is a directory";
// empty: none.
std::string WhyUnreadable(const std::string& path);

// An open file. Pipes, and whatever else cannot be read twice, are read once.
class FileStream final : public ByteStream {
 public:
  // Failure: as ReadFile.
  static absl::StatusOr<std::unique_ptr<FileStream>> Open(const FileToRead& file);
  ~FileStream() override;
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  // A pipe can be read again while no more than kKeptBytes of it have been read; then it fails.
  absl::Status Rewind() override;
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override;
  // The first bytes, kKeptBytes at most, or all there are; the next Read begins with them.
  // REQUIRES: nothing was read.
  absl::StatusOr<std::string_view> Peek(size_t size);
  // The bytes of a regular file; -1: of anything else.
  int64_t size() const { return size_; }

  static constexpr size_t kKeptBytes = size_t{4} << 20;

 private:
  FileStream(FileToRead file, int descriptor, int64_t size)
      : file_(std::move(file)), descriptor_(descriptor), size_(size) {}

  absl::StatusOr<size_t> ReadOn(char* buffer, size_t size);

  const FileToRead file_;
  const int descriptor_;
  const int64_t size_;
  std::string kept_;  // the first bytes, as far as they were read
  size_t at_ = 0;     // in it
  bool is_all_kept_ = true;
};

// A limit on what is read, and what to do where it is reached.
struct FileLimit {
  const char* name;
  int64_t bytes;
  const char* remedy;
};

// ReadFile within a limit, which is looked at before a regular file is read, and counted while
// anything else is. `check` hears the first bytes, a block at least or all there are; what it fails
// with is the failure. Failure, too: OUT_OF_RANGE, reason FILE_TOO_LARGE.
absl::StatusOr<std::string> ReadWhole(const FileToRead& file, const FileLimit& limit,
                                      const std::function<absl::Status(std::string_view)>& check);

}  // namespace stepcast::client
