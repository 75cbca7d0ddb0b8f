// The directory a store keeps its files in, owned by one process at a time.
//
// Ownership is an advisory lock (flock) on the file `lock` inside, which the system releases when
// the process ends, however it ends. Lifetime: owned until destroyed.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepcast::server {

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
  // Gives it its name; then it survives a power failure. UNAVAILABLE, reason STORE_UNAVAILABLE, if
  // that fails, for instance because the name is taken.
  absl::Status Place() const;

 private:
  const std::string name_;
  const std::string path_;
};

}  // namespace stepcast::server
