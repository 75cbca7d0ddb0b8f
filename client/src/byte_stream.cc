#include "client/src/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/src/error_status.h"

#include "stepcast/profile_encoding.h"

namespace stepcast::client {

namespace {

absl::Status Unreadable(const FileToRead& file, absl::StatusCode code, std::string_view why) {
  return MakeLocalError(
      code, "FILE_UNREADABLE",
      absl::StrCat("cannot read ", file.Name(), ": ", absl::string_view(why.data(), why.size())),
      {{"path", file.Name()}});
}

absl::StatusCode CodeOf(int error) {
  if (error == ENOENT || error == ENOTDIR) return absl::StatusCode::kNotFound;
  if (error == EACCES || error == EPERM) return absl::StatusCode::kPermissionDenied;
  if (error == EISDIR || error == ENXIO || error == ELOOP || error == EBADF)
    return absl::StatusCode::kInvalidArgument;
  return absl::StatusCode::kUnknown;
}

// The text of an errno that opening or reading the file set.
std::string ReasonOf(const std::string& path, int error) {
  std::array<char, PATH_MAX> target{};
  if (error == ENOENT && readlink(path.c_str(), target.data(), target.size() - 1) >= 0)
    return absl::StrCat("it is a link to ", target.data(), ", which is not there");
  if (error == ENOENT) return "there is no such file";
  if (error == EACCES || error == EPERM) return "permission denied";
  if (error == EISDIR) return "it is a directory";
  if (error == ELOOP) return "it is a link that leads to itself";
  if (error == EBADF) return "it is closed, or not open for reading";
  return std::strerror(error);
}

absl::Status UnreadableFile(const FileToRead& file, int error) {
  return Unreadable(file, CodeOf(error), ReasonOf(file.path, error));
}

// Empty: it can be read. Of devices a terminal can, and /dev/null; which of them an open one is.
std::string_view ReasonOfType(const struct stat& status, bool is_standard_input,
                              int descriptor = -1) {
  if (S_ISDIR(status.st_mode)) return "it is a directory";
  if (S_ISBLK(status.st_mode)) return "it is a device";
  if (S_ISSOCK(status.st_mode) && !is_standard_input) return "it is a socket";
  if (!S_ISCHR(status.st_mode) || descriptor < 0 || isatty(descriptor) == 1) return {};
  struct stat null {};
  const bool is_null = stat("/dev/null", &null) == 0 && null.st_rdev == status.st_rdev;
  return is_null ? "" : "it is a device";
}

struct Opened {
  int descriptor;
  int64_t size;  // of a regular file, else -1
};

absl::StatusOr<Opened> OpenToRead(const FileToRead& file) {
  struct stat status {};
  // Before it is opened, for that may already do something to a device.
  if (!file.is_standard_input && stat(file.path.c_str(), &status) == 0) {
    if (const std::string_view why = ReasonOfType(status, false); !why.empty())
      return Unreadable(file, absl::StatusCode::kInvalidArgument, why);
  }
  const int descriptor = file.is_standard_input
                             ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                             : open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return UnreadableFile(file, errno);
  if (fstat(descriptor, &status) != 0) status = {};
  if (const std::string_view why = ReasonOfType(status, file.is_standard_input, descriptor);
      !why.empty()) {
    close(descriptor);
    return Unreadable(file, absl::StatusCode::kInvalidArgument, why);
  }
  return Opened{.descriptor = descriptor, .size = S_ISREG(status.st_mode) ? status.st_size : -1};
}

absl::Status TooLarge(const FileToRead& file, const FileLimit& limit, std::string_view how_large) {
  return MakeLocalError(
      absl::StatusCode::kOutOfRange, "FILE_TOO_LARGE",
      absl::StrCat("cannot read ", file.Name(), ": ", std::string(how_large), " the limit ",
                   limit.name, " = ", limit.bytes, " bytes; ", limit.remedy),
      {{"path", file.Name()}, {limit.name, absl::StrCat(limit.bytes)}});
}

// zlib hands on as it is what is not compressed.
class ReadableFile {
 public:
  // Owns the descriptor.
  ReadableFile(const FileToRead& file, int descriptor)
      : file_(file), compressed_(gzdopen(descriptor, "rb")) {}
  ~ReadableFile() {
    if (compressed_ != nullptr) gzclose_r(compressed_);
  }
  ReadableFile(const ReadableFile&) = delete;
  ReadableFile& operator=(const ReadableFile&) = delete;

  // Appends up to `size` bytes; false: there are no more.
  absl::StatusOr<bool> Append(size_t size, std::string& content) {
    if (compressed_ == nullptr) return UnreadableFile(file_, ENOMEM);
    const size_t before = content.size();
    content.resize(before + size);
    const int count = gzread(compressed_, content.data() + before, static_cast<unsigned>(size));
    content.resize(before + static_cast<size_t>(std::max(count, 0)));
    int error = Z_OK;
    if (count < 0) gzerror(compressed_, &error);
    if (error == Z_ERRNO) return UnreadableFile(file_, errno);
    if (error != Z_OK) return Damaged("damaged");
    if (count > 0) return true;
    // A file that ends within compressed data is told of only here.
    const int closed = gzclose_r(std::exchange(compressed_, nullptr));
    if (closed == Z_BUF_ERROR) return Damaged("cut short");
    return false;
  }

 private:
  absl::Status Damaged(const char* how) const {
    return Unreadable(file_, absl::StatusCode::kInvalidArgument,
                      absl::StrCat("its gzip data is ", how));
  }

  const FileToRead& file_;
  gzFile compressed_;
};

constexpr size_t kBlockBytes = size_t{1} << 20;
constexpr FileLimit kAnyFile{.name = "max_file_bytes",
                             .bytes = int64_t{1} << 30,
                             .remedy = "keep fewer steps, or write it in proto binary"};

}  // namespace

std::string WhyUnreadable(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return ReasonOf(path, errno);
  if (const std::string_view why = ReasonOfType(status, false); !why.empty())
    return std::string(why);
  return access(path.c_str(), R_OK) == 0 ? "" : ReasonOf(path, errno);
}

absl::StatusOr<std::unique_ptr<FileStream>> FileStream::Open(const FileToRead& file) {
  const absl::StatusOr<Opened> opened = OpenToRead(file);
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<FileStream>(new FileStream(file, opened->descriptor, opened->size));
}

FileStream::~FileStream() { close(descriptor_); }

absl::Status FileStream::Rewind() {
  if (is_all_kept_) {
    at_ = 0;
    return absl::OkStatus();
  }
  if (lseek(descriptor_, 0, SEEK_SET) == 0) {
    kept_.clear();
    at_ = 0;
    is_all_kept_ = true;
    return absl::OkStatus();
  }
  return Unreadable(file_, absl::StatusCode::kFailedPrecondition,
                    "the call failed on its way and is to be repeated, and this is a pipe, which "
                    "is read once: run the command again, or give a file");
}

absl::StatusOr<size_t> FileStream::ReadOn(char* buffer, size_t size) {
  ssize_t read = -1;
  do {
    read = ::read(descriptor_, buffer, size);
  } while (read < 0 && errno == EINTR);
  if (read < 0) return UnreadableFile(file_, errno);
  return static_cast<size_t>(read);
}

absl::StatusOr<size_t> FileStream::Read(char* buffer, size_t size) {
  if (at_ < kept_.size()) {
    const size_t taken = kept_.copy(buffer, size, at_);
    at_ += taken;
    return taken;
  }
  absl::StatusOr<size_t> read = ReadOn(buffer, size);
  if (!read.ok() || *read == 0 || !is_all_kept_) return read;
  if (kept_.size() + *read <= kKeptBytes) {
    kept_.append(buffer, *read);
    at_ = kept_.size();
  } else {
    is_all_kept_ = false;
    kept_ = {};
    at_ = 0;
  }
  return read;
}

absl::StatusOr<std::string_view> FileStream::Peek(size_t size) {
  std::array<char, size_t{64} << 10> block;
  while (kept_.size() < std::min(size, kKeptBytes)) {
    const absl::StatusOr<size_t> read =
        ReadOn(block.data(), std::min(block.size(), kKeptBytes - kept_.size()));
    if (!read.ok()) return read.status();
    if (*read == 0) break;
    kept_.append(block.data(), *read);
  }
  return std::string_view(kept_).substr(0, size);
}

absl::StatusOr<std::string> ReadWhole(const FileToRead& file, const FileLimit& limit,
                                      const std::function<absl::Status(std::string_view)>& check) {
  const absl::StatusOr<Opened> opened = OpenToRead(file);
  if (!opened.ok()) return opened.status();
  ReadableFile readable(file, opened->descriptor);
  std::string content;
  // Memory that nothing is read into costs nothing, and a text that grows is copied.
  const int64_t expected = opened->size < 0 ? limit.bytes : std::min(opened->size, limit.bytes);
  content.reserve(kBlockBytes + static_cast<size_t>(expected));
  bool is_checked = false;
  while (true) {
    const absl::StatusOr<bool> more = readable.Append(kBlockBytes, content);
    if (!more.ok()) return more.status();
    if (!is_checked && (!*more || content.size() >= kBlockBytes)) {
      is_checked = true;
      if (absl::Status status = check(content); !status.ok()) return status;
      if (opened->size > limit.bytes)
        return TooLarge(file, limit, absl::StrCat("its ", opened->size, " bytes are above"));
    }
    if (!*more) return content;
    if (static_cast<int64_t>(content.size()) > limit.bytes)
      return TooLarge(file, limit, "it is above");
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  return ReadWhole({.path = path}, kAnyFile, [](std::string_view) { return absl::OkStatus(); });
}

}  // namespace stepcast::client
