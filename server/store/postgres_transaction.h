// A transaction of a PostgreSQL connection, rolled back unless committed.
#pragma once

#include "absl/status/status.h"

#include "server/store/postgres_connection.h"

namespace stepcast::server {

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
