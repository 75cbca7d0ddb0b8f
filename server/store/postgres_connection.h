// Connections to a PostgreSQL database, and the values that statements take and give.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct pg_result;

struct pg_conn;

namespace stepcast::server {

// The values of one statement's parameters, $1 and on, in the binary form PostgreSQL reads.
//
// Texts go as bytea, so every byte may occur, a zero too, and they compare bytewise; the views
// given must outlive the use.
class PostgresParameters {
 public:
  PostgresParameters& Integer(int64_t value);  // bigint
  PostgresParameters& Bytes(std::string_view value);
  PostgresParameters& NullBytes();
  PostgresParameters& BytesArray(const std::vector<std::string_view>& values);  // bytea[]
  // For functions of PostgreSQL that take a text. REQUIRES: UTF-8 without a zero byte.
  PostgresParameters& Text(std::string_view value);

  // The parameters in the form that PQsendQueryParams takes.
  int count() const { return static_cast<int>(types_.size()); }
  const unsigned* types() const { return types_.data(); }
  const char* const* values() const { return values_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }
  size_t bytes() const { return bytes_; }

 private:
  PostgresParameters& Add(unsigned type, std::string_view value);

  std::deque<std::string> owned_;  // does not move what it has
  std::vector<unsigned> types_;
  std::vector<const char*> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
  size_t bytes_ = 0;
};

// The rows that one statement of PostgreSQL gave.
//
// Rows and columns count from 0; what a column is asked for must be its type, as the statement
// selects it. Threads: none.
class PostgresResult {
 public:
  explicit PostgresResult(pg_result* result) : result_(result) {}

  int rows() const;
  // Rows that an INSERT, UPDATE or DELETE changed.
  int64_t changed() const;
  bool IsNull(int row, int column) const;
  int64_t Integer(int row, int column) const;  // of a bigint, integer or boolean
  std::string_view Bytes(int row, int column)
      const;  // of a bytea or text; empty for NULL; valid as long as the result
  std::vector<std::string> BytesArray(
      int row, int column) const;  // of a bytea[] without nulls; empty for what is none

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

// The error of the store that stands for a failure of PostgreSQL.
// By the SQLSTATE, of which an empty one stands for a lost or refused connection:
//   RESOURCE_EXHAUSTED, reason DISK_FULL: its disk is (53100)
//   UNAVAILABLE, reason STORE_UNAVAILABLE: the database is away, read-only, too slow or busy with
//     others, or does not let us in
//   DATA_LOSS, reason STORE_CORRUPT: it says that its files are damaged
//   RESOURCE_EXHAUSTED, reason STORE_FULL: a value is longer than it takes
//   INTERNAL, reason STORE_INTERNAL: anything else, which is a mistake of ours
// `doing` completes "cannot ..."; `said` is the server's or the library's text. The state is in the
// metadata as `sqlstate`.
absl::Status PostgresError(std::string_view sqlstate, std::string_view doing,
                           std::string_view said);

// True if the transaction failed only because of another one and may be run again.
bool MayRunAgain(const absl::Status& status);

struct PostgresConnectionOptions {
  std::string conninfo;             // keywords and values, or a URL
  int connect_timeout_seconds = 5;  // for each address it names, unless it says otherwise; looking
                                    // a name up is not bounded by it
  int statement_timeout_ms =
      15'000;  // of one statement, unless the role or the database has a shorter one
};

// INVALID_ARGUMENT, reason CONNECTION_STRING_INVALID, unless libpq can read it. Does not quote it,
// since it may hold a password.
absl::Status CheckConninfo(const std::string& conninfo);

// One connection to a PostgreSQL database.
//
// Every wait has an end: a database that is slow, hung or cut off gives a named error. What a
// connection string leaves open comes from libpq's PG* environment, service file and password file.
// Settings: a commit that returned is durable (synchronous_commit is not off). Threads: one at a
// time. Errors: those of PostgresError; no text of ours holds a password.
class PostgresConnection {
 public:
  static absl::StatusOr<std::unique_ptr<PostgresConnection>> Open(
      const PostgresConnectionOptions& options);
  ~PostgresConnection();
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  // Runs one statement, which is a transaction of its own if none is open.
  absl::StatusOr<PostgresResult> Run(const char* sql, const PostgresParameters& parameters = {});
  // Runs statements without parameters, in one transaction if none is open.
  absl::Status Script(const std::string& script);
  // Waits until a notification has come to what was listened to, at most so long, or until `wake`,
  // a descriptor, can be read. Takes all that have come; whether any has.
  absl::StatusOr<bool> AwaitNotification(std::chrono::milliseconds longest, int wake);

  bool InTransaction() const;
  // True if it is of no more use.
  // Looks at what has come, so it notices a database that went while the connection was idle.
  // REQUIRES: no statement runs.
  bool IsBroken();

 private:
  PostgresConnection(pg_conn* connection, int patience_ms)
      : connection_(connection), patience_ms_(patience_ms) {}

  absl::Status Configure(int statement_timeout_ms);
  absl::StatusOr<PostgresResult> Collect();
  absl::Status Flush();
  absl::Status AwaitResult();
  bool TakeNotifications();
  absl::Status TimedOut();
  absl::Status Lost();

  pg_conn* const connection_;
  const int patience_ms_;  // limit of nothing coming or going while a statement runs
  bool lost_ = false;
};

// A transaction of a PostgreSQL connection, rolled back unless committed.
// Each statement inside sees what was committed before it began, whatever the database's default
// is. REQUIRES: no other transaction of the connection is open.
class PostgresTransaction {
 public:
  explicit PostgresTransaction(PostgresConnection& connection)
      : connection_(connection),
        status_(connection.Script("BEGIN ISOLATION LEVEL READ COMMITTED")) {}
  ~PostgresTransaction() {
    if (!connection_.IsBroken() && connection_.InTransaction())
      connection_.Script("ROLLBACK").IgnoreError();
  }
  PostgresTransaction(const PostgresTransaction&) = delete;
  PostgresTransaction& operator=(const PostgresTransaction&) = delete;

  // OK if it began.
  const absl::Status& status() const { return status_; }
  // OK: everything is durable. Otherwise nothing of it is seen, unless the connection broke just
  // then: then it is either.
  absl::Status Commit() { return connection_.Script("COMMIT"); }

 private:
  PostgresConnection& connection_;
  absl::Status status_;
};

}  // namespace stepcast::server
