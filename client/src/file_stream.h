// A file as a stream of bytes, so that it may be larger than memory.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "client/src/byte_stream.h"

namespace stepcast::client {

class FileStream final : public ByteStream {
 public:
  // Failure: as ReadFile.
  static absl::StatusOr<std::unique_ptr<FileStream>> Open(const std::string& path);

  absl::Status Rewind() override;
  absl::StatusOr<size_t> Read(char* buffer, size_t size) override;

 private:
  using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  FileStream(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}

  const std::string path_;
  const File file_;
};

}  // namespace stepcast::client
