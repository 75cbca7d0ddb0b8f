// A connection to an SQLite database file, with its statements, transactions and errors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace stepcast::server {

// The error of the store that stands for an SQLite result code.
// OK for SQLITE_OK, SQLITE_ROW and SQLITE_DONE. Otherwise, by the code's primary part:
//   RESOURCE_EXHAUSTED, reason DISK_FULL: the disk is
//   UNAVAILABLE, reason STORE_UNAVAILABLE: the medium or another process is in the way: I/O error,
//     read-only, busy, cannot open
//   DATA_LOSS, reason STORE_CORRUPT: the file is damaged or no database
//   RESOURCE_EXHAUSTED, reason STORE_FULL: a value is longer than SQLite takes
//   INTERNAL, reason STORE_INTERNAL: anything else, which is a mistake of ours
// `doing` completes "cannot ...". The code is in the metadata as `sqlite_code`. `system_error`: the
// system's number, where SQLite had one; 0: none.
absl::Status SqliteError(int code, std::string_view doing, int system_error = 0);

// One use of a prepared SQLite statement: bind, step, read.
//
// Values are bound to the parameters from left to right and must outlive the use. A failure to
// prepare or to bind is kept and returned by Step. Threads: those of its connection, which must
// outlive it. Destruction makes the statement ready for its next use.
class SqliteStatement {
 public:
  // Borrows `statement`, which may be null if `prepared` is an error.
  SqliteStatement(sqlite3_stmt* statement, absl::Status prepared);
  ~SqliteStatement();
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  SqliteStatement& Integer(int64_t value);
  SqliteStatement& Text(std::string_view value);
  SqliteStatement& Blob(std::string_view value);

  // True: there is a row to read. False: done.
  absl::StatusOr<bool> Step();
  // Runs a statement to its end, passing over rows.
  absl::Status Run();

  // Column of the present row, from 0. REQUIRES: the last Step gave true.
  int64_t IntegerAt(int column) const;
  std::string BytesAt(int column) const;  // of a text or a blob; empty for NULL
  bool IsNullAt(int column) const;

 private:
  void Keep(int code);

  sqlite3_stmt* statement_;
  absl::Status status_;
  int bound_ = 0;
};

struct SqliteConnectionOptions {
  std::string path;
  int busy_timeout_ms = 5000;  // wait at most so long for a lock another connection holds
};

// One connection to an SQLite database file, with the statements it has prepared.
//
// Settings: foreign keys on; every commit waits for the disk (synchronous=FULL).
// Threads: one at a time.
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

// A transaction of an SQLite connection, rolled back unless committed.
// REQUIRES: statements used inside are declared after it, and no other transaction of the
// connection is open.
class SqliteTransaction {
 public:
  enum class Kind {
    kRead,   // one unchanging view of the database
    kWrite,  // takes the write lock now, so it cannot fail for want of it later
  };

  SqliteTransaction(SqliteConnection& connection, Kind kind)
      : connection_(connection),
        status_(connection.Use(kind == Kind::kWrite ? "BEGIN IMMEDIATE" : "BEGIN").Run()) {}
  ~SqliteTransaction() {
    // SQLite itself rolls back on some errors, a full disk for one.
    if (connection_.InTransaction()) connection_.Use("ROLLBACK").Run().IgnoreError();
  }
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;

  // OK if it began.
  const absl::Status& status() const { return status_; }
  // OK: everything is durable. Otherwise nothing of it is seen.
  absl::Status Commit() { return connection_.Use("COMMIT").Run(); }

 private:
  SqliteConnection& connection_;
  absl::Status status_;
};

}  // namespace stepcast::server
