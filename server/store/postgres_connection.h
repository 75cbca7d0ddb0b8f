// One connection to a PostgreSQL database.
//
// Every wait has an end: a database that is slow, hung or cut off gives a named error. What a
// connection string leaves open comes from libpq's PG* environment, service file and password file.
// Settings: a commit that returned is durable (synchronous_commit is not off). Threads: one at a
// time. Errors: those of PostgresError; no text of ours holds a password.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/store/postgres_parameters.h"
#include "server/store/postgres_result.h"

struct pg_conn;

namespace stepcast::server {

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

}  // namespace stepcast::server
