// A transaction of an SQLite connection, rolled back unless committed.
#pragma once

#include "absl/status/status.h"

#include "server/store/sqlite_connection.h"

namespace stepcast::server {

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
