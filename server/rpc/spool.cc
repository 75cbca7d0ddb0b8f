#include "server/rpc/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/store/disk_space.h"

namespace stepcast::server {

namespace {

constexpr mode_t kOwnerOnly = 0600;

int OpenUnnamed(const std::string& directory) {
  const int file = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kOwnerOnly);
  if (file >= 0) return file;
  // Not every file system has files without a name.
  std::string name = directory + "/import-XXXXXX";
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

// Several may read one file: none moves its position.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(int file) : file_(file) {}

  absl::StatusOr<size_t> Read(char* buffer, size_t size) override {
    ssize_t read = 0;
    do {
      read = pread(file_, buffer, size, at_);
    } while (read < 0 && errno == EINTR);
    if (read < 0) {
      return MakeError(
          absl::StatusCode::kUnavailable,
          absl::StrCat("cannot read what was imported: ", std::generic_category().message(errno)),
          {.reason = "SPOOL_UNAVAILABLE"});
    }
    at_ += read;
    return static_cast<size_t>(read);
  }

 private:
  const int file_;
  off_t at_ = 0;
};

}  // namespace

Spool::~Spool() {
  if (file_ >= 0) close(file_);
}

absl::Status Spool::Failed(const char* doing, int error) const {
  if (MeansDiskFull(error)) {
    return DiskFull({.where = absl::StrCat("the disk of ", directory_, ", where imports wait,"),
                     .todo = "free some of it, make it larger, or import here with --save",
                     .metadata = {{"directory", directory_},
                                  {"cause", std::generic_category().message(error)}}});
  }
  return MakeError(absl::StatusCode::kUnavailable,
                   absl::StrCat("cannot ", doing, " a temporary file for the import in ",
                                directory_, ": ", std::generic_category().message(error)),
                   {.reason = "SPOOL_UNAVAILABLE"});
}

absl::Status Spool::Append(std::string_view bytes) {
  if (in_memory() && memory_.size() + bytes.size() > kMemoryBytes) {
    if (absl::Status status = MoveToFile(); !status.ok()) return status;
  }
  size_ += static_cast<int64_t>(bytes.size());
  if (!in_memory()) return Write(bytes);
  memory_.append(bytes);
  return absl::OkStatus();
}

absl::Status Spool::MoveToFile() {
  file_ = OpenUnnamed(directory_);
  if (file_ < 0) return Failed("create", errno);
  absl::Status written = Write(memory_);
  std::string().swap(memory_);
  return written;
}

absl::Status Spool::Write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return Failed("write", errno);
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

std::unique_ptr<ByteSource> Spool::Read() const {
  if (in_memory()) return std::make_unique<TextSource>(memory_);
  return std::make_unique<FileSource>(file_);
}

}  // namespace stepcast::server
