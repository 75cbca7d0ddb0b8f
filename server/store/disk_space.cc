#include "server/store/disk_space.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

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
