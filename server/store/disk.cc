#include "server/store/disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/store/store_error.h"

namespace stepcast::server {

namespace {

constexpr mode_t kDirectoryMode = 0750;
constexpr mode_t kFileMode = 0640;  // nobody else reads what the directory protects

absl::Status Failed(std::string_view doing, const std::string& path, int error) {
  return StoreUnavailable(absl::StrCat("cannot ", std::string(doing), " data directory ", path,
                                       ": ", std::generic_category().message(error)));
}

// Makes new names in the directory outlive a power failure.
absl::Status Sync(const std::string& directory) {
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return Failed("open", directory, errno);
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  return error == 0 ? absl::OkStatus() : Failed("sync", directory, error);
}

absl::Status MakeDirectories(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return absl::OkStatus();
  const std::filesystem::path parent = path.parent_path();
  if (!parent.empty() && parent != path) {
    if (absl::Status made = MakeDirectories(parent); !made.ok()) return made;
  }
  if (mkdir(path.c_str(), kDirectoryMode) != 0 && errno != EEXIST)
    return Failed("create", path.string(), errno);
  return Sync(parent.empty() ? "." : parent.string());
}

// Gives a file to the owner of a directory: what root makes there is the server's. Others may not,
// and need not.
void GiveToOwnerOf(const std::string& directory, const std::string& file) {
  struct stat facts {};
  if (geteuid() != 0 || stat(directory.c_str(), &facts) != 0) return;
  [[maybe_unused]] const int given = lchown(file.c_str(), facts.st_uid, facts.st_gid);
}

// Only for the message that another process gives, so a full disk does not matter.
void NoteOwner(int lock_file) {
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(lock_file, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = pwrite(lock_file, pid.data(), pid.size(), 0);
}

absl::Status InUse(const std::string& path, int lock_file) {
  std::array<char, 20> owner{};
  const ssize_t size = pread(lock_file, owner.data(), owner.size(), 0);
  std::string pid(owner.data(), size > 0 ? static_cast<size_t>(size) : 0);
  while (!pid.empty() && pid.back() == '\n') pid.pop_back();
  const std::string who =
      pid.empty() ? "another process" : absl::StrCat("another process (", pid, ")");
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      absl::StrCat("data directory ", path, " is in use by ", who),
      {.reason = "DATA_DIRECTORY_IN_USE", .metadata = {{"directory", path}, {"pid", pid}}});
}

}  // namespace

absl::StatusOr<DataDirectory> DataDirectory::Own(const std::string& path) {
  // Absolute, so that a later change of the working directory does not matter; without a slash at
  // the end, which would be a name of its own.
  std::error_code error;
  std::filesystem::path directory = std::filesystem::absolute(path, error).lexically_normal();
  if (path.empty() || error) return Failed("find", path, path.empty() ? ENOENT : error.value());
  if (!directory.has_filename()) directory = directory.parent_path();
  if (absl::Status made = MakeDirectories(directory); !made.ok()) return made;
  const std::string lock_path = (directory / "lock").string();
  const int lock_file = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kFileMode);
  if (lock_file < 0) return Failed("open the file lock of", directory.string(), errno);
  GiveToOwnerOf(directory.string(), lock_path);
  DataDirectory owned(directory.string(), lock_file);
  if (flock(lock_file, LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? InUse(owned.path(), lock_file)
                                : Failed("lock", owned.path(), errno);
  }
  NoteOwner(lock_file);
  return owned;
}

DataDirectory::~DataDirectory() {
  if (lock_file_ >= 0) close(lock_file_);
}

DataDirectory::DataDirectory(DataDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_file_(std::exchange(other.lock_file_, -1)) {}

std::string DataDirectory::File(std::string_view name) const {
  return absl::StrCat(path_, "/", std::string(name));
}

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
  const std::filesystem::path folder = std::filesystem::path(name_).parent_path();
  const std::string where = folder.empty() ? "." : folder.string();
  struct stat facts {};
  if (stat(path_.c_str(), &facts) == 0 && chmod(path_.c_str(), facts.st_mode & kFileMode) != 0)
    return Failed(absl::StrCat("protect ", path_), errno);
  GiveToOwnerOf(where, path_);
  if (absl::Status synced = Sync(path_, O_RDONLY); !synced.ok()) return synced;
  // Not every file system knows how to refuse a name that is taken; then whoever calls has looked.
  const bool placed =
      renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, name_.c_str(), RENAME_NOREPLACE) == 0 ||
      (errno == EINVAL && rename(path_.c_str(), name_.c_str()) == 0);
  if (!placed) return Failed(absl::StrCat("name ", name_), errno);
  return Sync(where, O_RDONLY | O_DIRECTORY);
}

namespace {

constexpr char kDiskFull[] = "DISK_FULL";

int64_t ReserveBytes(const std::string& directory) {
  constexpr int64_t kShare = 20;
  const std::optional<DiskSpace> space = SpaceOf(directory);
  return space ? std::clamp(space->total_bytes / kShare, DiskReserve::kMinBytes,
                            DiskReserve::kMaxBytes)
               : 0;
}

}  // namespace

std::optional<DiskSpace> SpaceOf(const std::string& directory) {
  struct statvfs facts {};
  // Some file systems say that they have no blocks at all.
  if (statvfs(directory.c_str(), &facts) != 0 || facts.f_blocks == 0) return std::nullopt;
  const auto block = static_cast<int64_t>(facts.f_frsize);
  return DiskSpace{.free_bytes = static_cast<int64_t>(facts.f_bavail) * block,
                   .total_bytes = static_cast<int64_t>(facts.f_blocks) * block};
}

bool MeansDiskFull(int error) { return error == ENOSPC || error == EDQUOT; }

absl::Status DiskFull(FullDisk disk) {
  std::string message = absl::StrCat(disk.where, " is full: ", disk.todo);
  const auto cause = disk.metadata.find("cause");
  if (cause != disk.metadata.end()) absl::StrAppend(&message, " (", cause->second, ")");
  return MakeError(absl::StatusCode::kResourceExhausted, message,
                   {.reason = kDiskFull, .metadata = std::move(disk.metadata)});
}

bool IsDiskFull(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && DetailsOf(status).reason == kDiskFull;
}

DiskReserve::DiskReserve(const std::string& directory, const std::string& name)
    : directory_(directory),
      path_(absl::StrCat(directory, "/", name)),
      bytes_(ReserveBytes(directory)) {
  struct stat facts {};
  constexpr int64_t kBlock = 512;
  is_taken_ = stat(path_.c_str(), &facts) == 0 && facts.st_blocks * kBlock >= bytes_;
}

void DiskReserve::Take() {
  const MutexLock lock(mutex_);
  if (is_taken_ || bytes_ == 0) return;
  const std::optional<DiskSpace> space = SpaceOf(directory_);
  if (!space || space->free_bytes < 2 * bytes_) return;
  constexpr mode_t kOwnerOnly = 0600;
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kOwnerOnly);
  if (file < 0) return;
  // Not posix_fallocate, which writes where the file system cannot allocate.
  is_taken_ = fallocate(file, 0, 0, bytes_) == 0;
  close(file);
  if (!is_taken_) unlink(path_.c_str());
}

void DiskReserve::GiveUp() {
  const MutexLock lock(mutex_);
  unlink(path_.c_str());
  is_taken_ = false;
}

}  // namespace stepcast::server
