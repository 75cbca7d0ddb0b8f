// One connection to an SQLite database file, with the statements it has prepared.
//
// Settings: foreign keys on; every commit waits for the disk (synchronous=FULL).
// Threads: one at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/store/sqlite_statement.h"

struct sqlite3;
struct sqlite3_stmt;

namespace stepcast::server {

struct SqliteConnectionOptions {
  std::string path;
  int busy_timeout_ms = 5000;  // wait at most so long for a lock another connection holds
};

class SqliteConnection {
 public:
  // Creates the file if it is not there. Errors as in SqliteError; a file that is no database may
  // show only at its first use.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(
      const SqliteConnectionOptions& options);
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  // A use of `sql`, which is prepared once and kept. REQUIRES: no other use of the same text is
  // alive; there are few different texts.
  SqliteStatement Use(std::string_view sql);
  // Runs one or more statements without parameters.
  absl::Status Execute(const std::string& script);
  // The integer in the first column of the only row of `sql`.
  absl::StatusOr<int64_t> IntegerOf(std::string_view sql);

  // Puts all of this database, as it is now, in place of what `other` has. Others may read and
  // write this one meanwhile.
  absl::Status CopyTo(SqliteConnection& other);

  // True if a transaction is open.
  bool InTransaction() const;
  // True if the file was removed or replaced since it was opened, so that what is written would be
  // lost.
  bool FileIsGone() const;

 private:
  explicit SqliteConnection(sqlite3* database) : database_(database) {}

  sqlite3* database_;
  std::map<std::string, sqlite3_stmt*, std::less<>>
      statements_;  // each finalized before the database is closed
};

}  // namespace stepcast::server
