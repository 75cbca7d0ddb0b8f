// The SQLite database of one data directory: one connection that writes, several that read, and the
// lock on the directory.
//
// Lifetime: what keeps something in it borrows it.
// All writes of all of them take turns, reads do not wait for them.
// Threads: safe. One process at a time: the directory is locked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/base/mutex.h"
#include "server/store/data_directory.h"
#include "server/store/sqlite_connection.h"

namespace stepcast::server {

// A fixed number of connections that threads borrow in turn.
//
// Threads: safe. Take waits while all are lent; it cannot wait for ever, since a lease covers one
// operation.
class SqliteConnectionPool {
 public:
  // A lease of a connection, which it gives back at the end of a scope. The pool must outlive it.
  class Lease {
   public:
    Lease(SqliteConnectionPool& pool, std::unique_ptr<SqliteConnection> connection);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    SqliteConnection& operator*() const { return *connection_; }

   private:
    SqliteConnectionPool& pool_;
    std::unique_ptr<SqliteConnection> connection_;
  };

  // REQUIRES: !connections.empty().
  explicit SqliteConnectionPool(std::vector<std::unique_ptr<SqliteConnection>> connections)
      : free_(std::move(connections)) {}

  Lease Take();

 private:
  Mutex mutex_;
  CondVar returned_;
  std::vector<std::unique_ptr<SqliteConnection>> free_ STEPCAST_GUARDED_BY(mutex_);
};

struct SqliteDatabaseOptions {
  std::string directory;       // created if missing
  int readers = 2;             // connections for reading. REQUIRES: above 0
  int busy_timeout_ms = 5000;  // wait for somebody else's lock on the database, a backup's for one
};

class SqliteDatabase {
 public:
  static constexpr char kFile[] = "profiles.sqlite3";

  // Takes the directory, creates the database or brings it to today's schema.
  // Errors name the directory: those of DataDirectory::Own, MigrateSchema and SqliteError.
  static absl::StatusOr<std::unique_ptr<SqliteDatabase>> Open(const SqliteDatabaseOptions& options);

  // A transaction on the writing connection, which it has alone; rolled back unless committed.
  class Writing {
   public:
    explicit Writing(SqliteDatabase& database);

    // OK if it began: UNAVAILABLE, reason STORE_UNAVAILABLE, if the file was removed.
    // REQUIRES of all else: it did.
    const absl::Status& status() const { return transaction_ ? transaction_->status() : file_; }
    SqliteConnection& operator*() const { return connection_; }
    // OK: everything is durable.
    absl::Status Commit() { return transaction_->Commit(); }

   private:
    MutexLock lock_;
    const absl::Status file_;
    SqliteConnection& connection_;
    std::optional<SqliteTransaction> transaction_;  // none: the file was removed
  };

  SqliteConnectionPool::Lease Read() { return readers_.Take(); }
  // Reads, and looks whether the file is still in its place; does not try to write.
  absl::Status Check();

 private:
  struct Connections {
    std::unique_ptr<SqliteConnection> writer;
    std::vector<std::unique_ptr<SqliteConnection>> readers;
  };

  static absl::StatusOr<Connections> Connect(const DataDirectory& directory,
                                             const SqliteDatabaseOptions& options);
  SqliteDatabase(DataDirectory directory, Connections connections);
  // Of a file that was removed what is written is lost.
  absl::Status CheckFile(const SqliteConnection& connection) const;

  const DataDirectory directory_;  // first, so that it is given up last
  Mutex mutex_;
  const std::unique_ptr<SqliteConnection> writer_;  // used with mutex_ held, by Writing
  SqliteConnectionPool readers_;
};

}  // namespace stepcast::server
