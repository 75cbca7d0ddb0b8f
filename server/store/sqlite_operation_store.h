// The store of operations on disk: beside the profiles, in the same SQLite database.
//
// Durability: what a call has changed before it returned OK survives the end of the process and of
// the machine. Cost: every call but Get, List and Count is one wait for the disk, taking turns with
// puts of profiles; Claim only if there is something to take. Leases run on the process's monotonic
// clock. One process has the database, so what an earlier one held is free as soon as this is
// opened. Threads: safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/base/clock.h"
#include "server/store/operation_store.h"
#include "server/store/sqlite_connection.h"
#include "server/store/sqlite_database.h"

namespace stepcast::server {

class SqliteOperationStore final : public OperationStore {
 public:
  // Ends the leases of earlier processes. Borrows database and clock. REQUIRES: no other store of
  // operations on the database is open.
  static absl::StatusOr<std::unique_ptr<SqliteOperationStore>> Open(SqliteDatabase& database,
                                                                    const OperationLimits& limits,
                                                                    const Clock& clock);

  absl::StatusOr<OperationRecord> Start(const NewOperation& operation) override;
  absl::StatusOr<StoredOperation> Get(const std::string& id) override;
  absl::StatusOr<OperationPage> List(const OperationQuery& query) override;
  absl::StatusOr<std::optional<ClaimedOperation>> Claim(const OperationClaim& claim) override;
  absl::StatusOr<HeartbeatAnswer> Heartbeat(const OperationAttempt& attempt,
                                            const OperationProgress& progress,
                                            int64_t lease_ns) override;
  absl::Status Finish(const OperationAttempt& attempt, const OperationResult& result) override;
  absl::Status Release(const OperationAttempt& attempt) override;
  absl::StatusOr<OperationRecord> RequestCancel(const std::string& id) override;
  absl::Status Delete(const std::string& id) override;
  absl::StatusOr<int64_t> Expire() override;
  absl::StatusOr<OperationCounts> Count() override;

 private:
  SqliteOperationStore(SqliteDatabase& database, const OperationLimits& limits, const Clock& clock)
      : database_(database), limits_(limits), clock_(clock) {}

  OperationTime Now() const {
    return {.lease_ns = clock_.MonotonicNs(), .wall_ns = clock_.WallNs()};
  }
  // Applies `change` to the record with this id and keeps what it made of it; the bytes of one that
  // is done by it are gone unless `change` kept new ones. An error of `change` is returned, and
  // nothing has changed.
  template <typename Change>
  absl::StatusOr<OperationRecord> Update(const std::string& id,
                                         const SqliteDatabase::Purpose& purpose, Change change);
  template <typename Change>
  absl::StatusOr<OperationRecord> UpdateOn(SqliteDatabase::Writing& writing, const std::string& id,
                                           Change change);
  absl::StatusOr<OperationRecord> StartOn(SqliteDatabase::Writing& writing,
                                          const NewOperation& operation);
  absl::StatusOr<std::optional<ClaimedOperation>> ClaimOn(SqliteDatabase::Writing& writing,
                                                          const OperationClaim& claim);
  absl::Status DeleteOn(SqliteDatabase::Writing& writing, const std::string& id);
  absl::StatusOr<int64_t> ExpireOn(SqliteDatabase::Writing& writing);

  SqliteDatabase& database_;
  const OperationLimits limits_;
  const Clock& clock_;
};

// Operations as rows of the database; sqlite_operation_rows.cc has these.
//
// Each runs within the caller's transaction. Errors are those of SqliteError.
// Threads: those of the connection.

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
// Ends the leases of all that run: their holders are gone.
absl::Status EndAllLeases(SqliteConnection& connection);

absl::StatusOr<OperationTotals> ReadOperationTotals(SqliteConnection& connection);
absl::StatusOr<OperationCounts> CountOperations(SqliteConnection& connection, int64_t wall_now_ns);

}  // namespace stepcast::server
