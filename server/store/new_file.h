// A file that has its name only once it is complete: it is written under another one beside it,
// which is removed if it is not placed.
//
// Threads: none.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace stepcast::server {

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
