// The disk that a store keeps its files on: the directory it owns, files that are placed once they
// are complete, and the room there is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/base/mutex.h"

namespace stepcast::server {

// The directory a store keeps its files in, owned by one process at a time.
//
// Ownership is an advisory lock (flock) on the file `lock` inside, which the system releases when
// the process ends, however it ends. Lifetime: owned until destroyed.
class DataDirectory {
 public:
  // Creates the directory, and those above it, where they are missing; what it creates is durable.
  // FAILED_PRECONDITION, reason DATA_DIRECTORY_IN_USE, if another owner has it; UNAVAILABLE, reason
  // STORE_UNAVAILABLE, if it cannot be made or written.
  static absl::StatusOr<DataDirectory> Own(const std::string& path);
  ~DataDirectory();
  DataDirectory(DataDirectory&& other) noexcept;
  DataDirectory& operator=(DataDirectory&&) = delete;

  const std::string& path() const { return path_; }
  // The path of a file inside.
  std::string File(std::string_view name) const;

 private:
  DataDirectory(std::string path, int lock_file) : path_(std::move(path)), lock_file_(lock_file) {}

  std::string path_;
  int lock_file_;  // descriptor; -1 once moved from
};

// A file that has its name only once it is complete: it is written under another one beside it,
// which is removed if it is not placed.
//
// Threads: none.
class NewFile {
 public:
  explicit NewFile(const std::string& name);
  // Removes what was not placed, with a journal of SQLite's beside it.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // The path to write it at; another one in each process.
  const std::string& path() const { return path_; }
  // Gives it its name; then it survives a power failure. Others than its owner and group may not
  // read it, and what root makes is the directory's owner's. UNAVAILABLE, reason STORE_UNAVAILABLE,
  // if that fails, for instance because the name is taken.
  absl::Status Place() const;

 private:
  const std::string name_;
  const std::string path_;
};

// The room on the disk below a directory: how much there is, what it means that there is none, and
// a reserve that is kept of it.
struct DiskSpace {
  int64_t free_bytes = 0;  // for who is not root
  int64_t total_bytes = 0;
};

// Space of the file system that the directory is on; none where the system does not say.
std::optional<DiskSpace> SpaceOf(const std::string& directory);

// True of the system's error numbers that mean that the disk, or the share of it, is used up.
bool MeansDiskFull(int error);

// A full disk: where it is, what to do, and what was said.
struct FullDisk {
  std::string where;  // "the disk of the data directory /var/lib/stepcast", for instance
  std::string todo;   // completes "... is full: "
  std::map<std::string, std::string> metadata;  // `cause`: what was said, for the message, too
};

// RESOURCE_EXHAUSTED, reason DISK_FULL, without RetryInfo: it does not pass by itself.
absl::Status DiskFull(FullDisk disk);
bool IsDiskFull(const absl::Status& status);

// A file that takes room on a disk, to be given up when the room is needed for what makes more.
//
// It is as large as a twentieth of the disk, from 256 KiB to 16 MiB: what deletions and the
// checkpoint after them write. Where there is no room for it, or the file system cannot allocate,
// there is none. Threads: safe.
class DiskReserve {
 public:
  static constexpr int64_t kMinBytes = int64_t{256} << 10;
  static constexpr int64_t kMaxBytes = int64_t{16} << 20;

  // Reserve in a file of this name in the directory, which may be there already.
  DiskReserve(const std::string& directory, const std::string& name);

  // Takes the room, unless it is taken or as much again would not be left beside it.
  void Take();
  void GiveUp();
  int64_t bytes() const { return bytes_; }

 private:
  const std::string directory_;
  const std::string path_;
  const int64_t bytes_;
  Mutex mutex_;
  bool is_taken_ STEPCAST_GUARDED_BY(mutex_) = false;
};

}  // namespace stepcast::server
