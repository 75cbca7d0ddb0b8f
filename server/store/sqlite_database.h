// The SQLite database that the stores of a data directory share: its tables, its one writer and its
// readers.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/base/mutex.h"
#include "server/store/disk.h"
#include "server/store/sqlite_connection.h"

namespace stepcast::server {

// In the header of every database file of ours ("STPC"), where file(1) and we look for it.
inline constexpr int kSqliteApplicationId = 0x53545043;
// The version that this program writes; in PRAGMA user_version. Version n is what the first n
// migrations make.
inline constexpr int kSchemaVersion = 5;

// Scripts, each of which leads from the version that is its index to the next. Append only: a
// released one never changes.
std::span<const char* const> SchemaMigrations();

// OK if the database is one of ours, of a version up to today's. Fails as MigrateSchema does; an
// empty one is foreign.
absl::Status CheckSchema(SqliteConnection& connection);

// Leaves the database at version migrations.size(), each step in a transaction of its own, and does
// nothing if it is there already. FAILED_PRECONDITION, reason STORE_SCHEMA_TOO_NEW, if it is
// beyond; reason STORE_FOREIGN if the file is another program's. Both leave it untouched.
absl::Status MigrateSchema(SqliteConnection& connection, std::span<const char* const> migrations);

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

// The SQLite database of one data directory: one connection that writes, several that read, and the
// lock on the directory.
//
// Lifetime: what keeps something in it borrows it.
// All writes of all of them take turns, reads do not wait for them.
// Room: beside the database lies a reserve, given up for writes that make room (disk.h) and
// taken again once there is room for it, so that a full disk can still be cleared. The write-ahead
// log is brought into the database before it outgrows what the reserve holds, and a write is
// refused that does not fit twice, into the log and into the database.
// Threads: safe. One process at a time: the directory is locked.
class SqliteDatabase {
 public:
  static constexpr char kFile[] = "profiles.sqlite3";
  static constexpr char kReserveFile[] = "reserve";

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

  // A write, by what it does to the room on the disk.
  struct Purpose {
    bool makes_room = false;  // a deletion and the like: may have the reserve's
    int64_t bytes = 0;        // that it stores; 0: next to nothing
  };

  // Runs `body`, which is given a Writing that began and commits it, and returns what it returns;
  // once more where it makes room and there was none. RESOURCE_EXHAUSTED, reason DISK_FULL, naming
  // the directory and what to do, where the disk takes no more.
  template <typename Body>
  auto Write(const Purpose& purpose, Body body) -> decltype(body(std::declval<Writing&>()));

  SqliteConnectionPool::Lease Read() { return readers_.Take(); }
  // Reads, and looks whether the file is still in its place; does not try to write.
  absl::Status Check();
  // DISK_FULL from the first write with bytes that was refused for want of room until there is room
  // for it, or another one was taken.
  absl::Status CheckRoom();
  // Space of the disk it is on; none where the system does not say.
  std::optional<DiskSpace> Space() const { return SpaceOf(directory_.path()); }

 private:
  struct Connections {
    std::unique_ptr<SqliteConnection> writer;
    std::vector<std::unique_ptr<SqliteConnection>> readers;
  };

  static absl::StatusOr<Connections> Connect(const DataDirectory& directory,
                                             const SqliteDatabaseOptions& options,
                                             int64_t reserve_bytes);
  SqliteDatabase(DataDirectory directory, std::unique_ptr<DiskReserve> reserve,
                 Connections connections);

  // The status a result carries, for both kinds of result.
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }

  // Before a write: refuses bytes that the disk has no room for.
  absl::Status Admit(const Purpose& purpose);
  // True if `bytes` more fit, into the log and into the database.
  bool HasRoomFor(int64_t bytes);
  // The bytes that the disk, the log and the database could still take.
  int64_t Room();
  // After a write: remembers that it was refused for want of room, or that one was not.
  void Note(const Purpose& purpose, const absl::Status& status);
  // Brings the log into the database and cuts it.
  void EmptyLog();
  absl::Status Full(const absl::Status& why) const;
  // Writes to a file that was removed are lost.
  absl::Status CheckFile(const SqliteConnection& connection) const;

  const DataDirectory directory_;  // first, so that it is given up last
  const std::unique_ptr<DiskReserve> reserve_;
  Mutex mutex_;
  const std::unique_ptr<SqliteConnection> writer_;  // used with mutex_ held, by Writing
  SqliteConnectionPool readers_;

  Mutex room_mutex_;
  bool is_full_ STEPCAST_GUARDED_BY(room_mutex_) = false;
  int64_t refused_bytes_ STEPCAST_GUARDED_BY(room_mutex_) = 0;  // of the write that was refused
  int64_t wanted_room_ STEPCAST_GUARDED_BY(room_mutex_) = 0;    // that there was not then
};

template <typename Body>
auto SqliteDatabase::Write(const Purpose& purpose, Body body)
    -> decltype(body(std::declval<Writing&>())) {
  using Result = decltype(body(std::declval<Writing&>()));
  const auto attempt = [&]() -> Result {
    Writing writing(*this);
    if (!writing.status().ok()) return writing.status();
    return body(writing);
  };
  if (absl::Status admitted = Admit(purpose); !admitted.ok()) return admitted;
  Result result = attempt();
  if (IsDiskFull(StatusOf(result)) && purpose.makes_room) {
    reserve_->GiveUp();
    EmptyLog();
    result = attempt();
    EmptyLog();
  }
  Note(purpose, StatusOf(result));
  if (IsDiskFull(StatusOf(result))) return Full(StatusOf(result));
  return result;
}

}  // namespace stepcast::server
