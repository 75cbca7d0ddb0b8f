// Operations as rows of a PostgreSQL database.
//
// Each runs within the caller's transaction. Errors are those of PostgresError.
// Threads: those of the connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/store/operation_store.h"
#include "server/store/postgres_connection.h"

namespace stepcast::server {

// A row that nobody else changes before the transaction ends, and the database's time.
struct LockedOperation {
  OperationRecord record;
  int64_t now_ns = 0;
};

// The totals that a start has to know. Others' starts wait until the transaction ends.
struct OperationRoom {
  int64_t open = 0;
  int64_t bytes = 0;
  int64_t now_ns = 0;
};

absl::StatusOr<std::optional<LockedOperation>> LockOperation(PostgresConnection& connection,
                                                             const std::string& id);
// The first that may be taken and that nobody else is just taking.
absl::StatusOr<std::optional<LockedOperation>> LockClaimable(PostgresConnection& connection);
absl::StatusOr<OperationRoom> LockStarts(PostgresConnection& connection);

absl::StatusOr<std::optional<OperationRecord>> FindOperationOfRequest(
    PostgresConnection& connection, const NewOperation& operation);
// With its result if it is done.
absl::StatusOr<std::optional<StoredOperation>> ReadOperation(PostgresConnection& connection,
                                                             const std::string& id);
absl::StatusOr<std::string> ReadOperationBytes(PostgresConnection& connection,
                                               const std::string& id);
absl::StatusOr<OperationPage> ListOperations(PostgresConnection& connection,
                                             const OperationQuery& query);
absl::StatusOr<OperationCounts> CountOperations(PostgresConnection& connection);

absl::Status InsertOperation(PostgresConnection& connection, const OperationRecord& record,
                             const std::string& request);
// Writes the fields of a record that may change.
absl::Status UpdateOperation(PostgresConnection& connection, const OperationRecord& record);
// In place of what it had.
absl::Status ReplaceOperationBytes(PostgresConnection& connection, const std::string& id,
                                   const std::string& bytes);
absl::Status DeleteOperation(PostgresConnection& connection, const std::string& id);
// Deletes those done longer ago than `retention_ns`, and of the others the first beyond `max_done`;
// returns how many.
absl::StatusOr<int64_t> DeleteExpired(PostgresConnection& connection, int64_t retention_ns,
                                      int64_t max_done);

}  // namespace stepcast::server
