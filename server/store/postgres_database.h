// The PostgreSQL database that the stores of several processes share: its tables, and connections.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/base/mutex.h"
#include "server/store/postgres_connection.h"

namespace stepcast::server {

// The tables of Stepcast in a PostgreSQL database, all named stepcast_*, and how older ones become
// today's.
//
// They are made in the first schema of the connection's search_path. Several processes may bring
// one database forward at the same time.

// Scripts, each of which leads from the version that is its index to the next. Append only: a
// released one never changes.
std::span<const char* const> PostgresMigrations();

// Leaves the database at version migrations.size(), each step in a transaction of its own; only
// reads if it is there already. FAILED_PRECONDITION, reason STORE_SCHEMA_TOO_NEW, if it is beyond;
// reason STORE_FOREIGN if it has tables of these names that are not ours. Both leave it untouched.
absl::Status MigratePostgres(PostgresConnection& connection,
                             std::span<const char* const> migrations);

struct PostgresConnectionPoolOptions {
  PostgresConnectionOptions connection;
  int connections = 4;   // REQUIRES: above 0
  int wait_ms = 30'000;  // for one to come back
};

// A bounded number of PostgreSQL connections that threads borrow in turn, made when they are first
// needed and again after they broke.
//
// Take waits while all are lent, and connects where one is missing, both for a bounded time. After
// an attempt to connect has failed, those that follow fail at once, for as long as it took but no
// longer than kMaxPauseMs: a database that is away must not hold every thread. Threads: safe.
class PostgresConnectionPool {
 public:
  static constexpr int64_t kMinPauseMs = 100;
  static constexpr int64_t kMaxPauseMs = 2000;

  // A lease of a connection, which it gives back at the end of a scope. The pool must outlive it.
  class Lease {
   public:
    Lease(PostgresConnectionPool& pool, std::unique_ptr<PostgresConnection> connection)
        : pool_(&pool), connection_(std::move(connection)) {}
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (connection_ != nullptr) pool_->GiveBack(std::move(connection_));
    }

    PostgresConnection& operator*() const { return *connection_; }
    PostgresConnection* operator->() const { return connection_.get(); }

   private:
    PostgresConnectionPool* pool_;
    std::unique_ptr<PostgresConnection> connection_;
  };

  explicit PostgresConnectionPool(const PostgresConnectionPoolOptions& options)
      : options_(options) {}

  // A connection that worked when it was last looked at, outside a transaction. UNAVAILABLE, reason
  // STORE_UNAVAILABLE, if there is none.
  absl::StatusOr<Lease> Take();

  // DISK_FULL for kFullNs after a write failed with it: nothing else says when there is room again.
  absl::Status CheckRoom();

  // Runs `body`, which is given a connection and does a transaction of its own, and again, up to
  // kAttempts times, where it failed only because of another transaction (MayRunAgain).
  template <typename Body>
  auto Run(Body body) -> decltype(body(std::declval<PostgresConnection&>()));

 private:
  static constexpr int kAttempts = 5;
  static constexpr int64_t kFullNs = 60'000'000'000;

  // The status a result carries, for both kinds of result.
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
    return result.status();
  }

  absl::StatusOr<std::unique_ptr<PostgresConnection>> Connect();
  void NoteFull(const absl::Status& status);
  // Null: the connection is gone, another may be made in its place.
  void GiveBack(std::unique_ptr<PostgresConnection> connection);

  const PostgresConnectionPoolOptions options_;
  Mutex mutex_;
  CondVar returned_;
  std::vector<std::unique_ptr<PostgresConnection>> free_ STEPCAST_GUARDED_BY(mutex_);
  int lent_ STEPCAST_GUARDED_BY(mutex_) = 0;
  absl::Status refused_ STEPCAST_GUARDED_BY(mutex_);              // of the last attempt to connect
  int64_t no_attempt_before_ns_ STEPCAST_GUARDED_BY(mutex_) = 0;  // of the steady clock
  absl::Status full_ STEPCAST_GUARDED_BY(mutex_);                 // of the last write that met it
  int64_t full_until_ns_ STEPCAST_GUARDED_BY(mutex_) = 0;         // of the steady clock
};

template <typename Body>
auto PostgresConnectionPool::Run(Body body) -> decltype(body(std::declval<PostgresConnection&>())) {
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<Lease> connection = Take();
    if (!connection.ok()) return connection.status();
    auto result = body(**connection);
    NoteFull(StatusOf(result));
    if (attempt == kAttempts || !MayRunAgain(StatusOf(result))) return result;
  }
}

struct PostgresDatabaseOptions {
  PostgresConnectionOptions connection;
  int connections = 4;  // that work at one time. REQUIRES: above 0
};

// A PostgreSQL database with today's tables, and the connections of one process to it.
//
// Lifetime: what keeps something in it borrows it.
// Other processes may use the same database at the same time.
// Threads: safe.
class PostgresDatabase {
 public:
  // Creates the tables or brings them to today's schema.
  // UNAVAILABLE, reason STORE_UNAVAILABLE, names the host and why it cannot be reached; else what
  // CheckConninfo and MigratePostgres fail with.
  static absl::StatusOr<std::unique_ptr<PostgresDatabase>> Open(
      const PostgresDatabaseOptions& options);

  PostgresConnectionPool& connections() { return connections_; }
  // For a connection apart from those.
  const PostgresConnectionOptions& connection_options() const { return connection_options_; }

 private:
  explicit PostgresDatabase(const PostgresDatabaseOptions& options)
      : connection_options_(options.connection),
        connections_({.connection = options.connection, .connections = options.connections}) {}

  const PostgresConnectionOptions connection_options_;
  PostgresConnectionPool connections_;
};

}  // namespace stepcast::server
