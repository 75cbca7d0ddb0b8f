#include "server/store/new_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

#include "server/store/store_error.h"

namespace stepcast::server {

namespace {

absl::Status Failed(const std::string& doing, int error) {
  return StoreUnavailable(
      absl::StrCat("cannot ", doing, ": ", std::generic_category().message(error)));
}

absl::Status Sync(const std::string& path, int flags) {
  const int descriptor = open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) return Failed(absl::StrCat("open ", path), errno);
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  return error == 0 ? absl::OkStatus() : Failed(absl::StrCat("sync ", path), error);
}

}  // namespace

NewFile::NewFile(const std::string& name)
    : name_(name), path_(absl::StrCat(name, ".", getpid(), ".partial")) {}

NewFile::~NewFile() {
  for (const char* part : {"", "-journal"}) unlink((path_ + part).c_str());
}

absl::Status NewFile::Place() const {
  if (absl::Status synced = Sync(path_, O_RDONLY); !synced.ok()) return synced;
  // Not every file system knows how to refuse a name that is taken; then whoever calls has looked.
  const bool placed =
      renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, name_.c_str(), RENAME_NOREPLACE) == 0 ||
      (errno == EINVAL && rename(path_.c_str(), name_.c_str()) == 0);
  if (!placed) return Failed(absl::StrCat("name ", name_), errno);
  const std::string folder = std::filesystem::path(name_).parent_path().string();
  return Sync(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
}

}  // namespace stepcast::server
