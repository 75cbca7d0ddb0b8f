#include "client/src/file_stream.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/src/error_status.h"

#include "stepcast/profile_encoding.h"

namespace stepcast::client {

namespace {

// Reason FILE_UNREADABLE, with the code that `error`, an errno, stands for.
absl::Status UnreadableFile(const std::string& path, int error) {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  if (error == ENOENT || error == ENOTDIR) code = absl::StatusCode::kNotFound;
  if (error == EACCES || error == EPERM) code = absl::StatusCode::kPermissionDenied;
  if (error == EISDIR) code = absl::StatusCode::kInvalidArgument;
  return MakeLocalError(code, "FILE_UNREADABLE",
                        absl::StrCat("cannot read ", path, ": ", std::strerror(error)),
                        {{"path", path}});
}

constexpr size_t kMaxFileBytes = size_t{1} << 30;
constexpr size_t kBlockBytes = size_t{1} << 20;

absl::Status Damaged(const std::string& path, const char* how) {
  return MakeLocalError(absl::StatusCode::kInvalidArgument, "FILE_UNREADABLE",
                        absl::StrCat("cannot read ", path, ": its gzip data is ", how),
                        {{"path", path}});
}

// zlib hands on as it is what is not compressed.
class ReadableFile {
 public:
  explicit ReadableFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {}
  ~ReadableFile() {
    if (file_ != nullptr) gzclose_r(file_);
  }
  ReadableFile(const ReadableFile&) = delete;
  ReadableFile& operator=(const ReadableFile&) = delete;

  // Appends up to `size` bytes; false: there are no more.
  absl::StatusOr<bool> Append(size_t size, std::string& content) {
    if (file_ == nullptr) return UnreadableFile(path_, errno);
    const size_t before = content.size();
    content.resize(before + size);
    const int count = gzread(file_, content.data() + before, static_cast<unsigned>(size));
    content.resize(before + static_cast<size_t>(std::max(count, 0)));
    int error = Z_OK;
    if (count < 0) gzerror(file_, &error);
    if (error == Z_ERRNO) return UnreadableFile(path_, errno);
    if (error != Z_OK) return Damaged(path_, "damaged");
    if (count > 0) return true;
    // A file that ends within compressed data is told of only here.
    const int closed = gzclose_r(std::exchange(file_, nullptr));
    if (closed == Z_BUF_ERROR) return Damaged(path_, "cut short");
    return false;
  }

 private:
  const std::string& path_;
  gzFile file_;
};

}  // namespace

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

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  ReadableFile file(path);
  std::string content;
  while (true) {
    const absl::StatusOr<bool> more = file.Append(kBlockBytes, content);
    if (!more.ok()) return more.status();
    if (!*more) return content;
    if (content.size() > kMaxFileBytes) {
      return MakeLocalError(absl::StatusCode::kOutOfRange, "FILE_TOO_LARGE",
                            absl::StrCat(path, " has more than ", kMaxFileBytes, " bytes"),
                            {{"path", path}});
    }
  }
}

absl::StatusOr<std::string> ReadFileStart(const std::string& path, size_t size) {
  ReadableFile file(path);
  std::string content;
  while (content.size() < size) {
    const absl::StatusOr<bool> more = file.Append(size - content.size(), content);
    if (!more.ok()) return more.status();
    if (!*more) break;
  }
  return content;
}

}  // namespace stepcast::client
