// Operations as rows of the database.
//
// Each runs within the caller's transaction. Errors are those of SqliteError.
// Threads: those of the connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/store/operation_store.h"
#include "server/store/sqlite_connection.h"

namespace stepcast::server {

struct OperationTotals {
  int64_t open = 0;
  int64_t bytes = 0;
};

absl::StatusOr<std::optional<OperationRecord>> FindOperation(SqliteConnection& connection,
                                                             const std::string& id);
absl::StatusOr<std::optional<OperationRecord>> FindOperationOfRequest(
    SqliteConnection& connection, const NewOperation& operation);
// The first that IsClaimable at this moment of the clock for leases.
absl::StatusOr<std::optional<OperationRecord>> FindClaimable(SqliteConnection& connection,
                                                             int64_t lease_now_ns);
// Its request, or its result.
absl::StatusOr<std::string> ReadOperationBytes(SqliteConnection& connection, const std::string& id);
absl::StatusOr<OperationPage> ListOperations(SqliteConnection& connection,
                                             const OperationQuery& query);

absl::Status InsertOperation(SqliteConnection& connection, const OperationRecord& record,
                             const std::string& request);
// Writes the fields of a record that may change.
absl::Status UpdateOperation(SqliteConnection& connection, const OperationRecord& record);
// In place of what it had.
absl::Status ReplaceOperationBytes(SqliteConnection& connection, const std::string& id,
                                   const std::string& bytes);
absl::Status DeleteOperation(SqliteConnection& connection, const std::string& id);
// Deletes those done at `done_before_ns` or earlier, and of the others the first beyond `max_done`;
// returns how many.
absl::StatusOr<int64_t> DeleteExpired(SqliteConnection& connection, int64_t done_before_ns,
                                      int64_t max_done);
// Of all that run: their holders are gone.
absl::Status EndAllLeases(SqliteConnection& connection);

absl::StatusOr<OperationTotals> ReadOperationTotals(SqliteConnection& connection);
absl::StatusOr<OperationCounts> CountOperations(SqliteConnection& connection, int64_t wall_now_ns);

}  // namespace stepcast::server
