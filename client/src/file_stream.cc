#include "client/src/file_stream.h"

#include <cerrno>
#include <utility>

#include "client/src/unreadable_file.h"

namespace stepcast::client {

absl::StatusOr<std::unique_ptr<FileStream>> FileStream::Open(const std::string& path) {
  File file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (file == nullptr) return UnreadableFile(path, errno);
  return std::unique_ptr<FileStream>(new FileStream(path, std::move(file)));
}

absl::Status FileStream::Rewind() {
  return std::fseek(file_.get(), 0, SEEK_SET) == 0 ? absl::OkStatus()
                                                   : UnreadableFile(path_, errno);
}

absl::StatusOr<size_t> FileStream::Read(char* buffer, size_t size) {
  const size_t read = std::fread(buffer, 1, size, file_.get());
  if (read == 0 && std::ferror(file_.get()) != 0) return UnreadableFile(path_, errno);
  return read;
}

}  // namespace stepcast::client
