// The stores of operations and of their shards in a PostgreSQL database, and the rows there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/store/operation_store.h"
#include "server/store/postgres_connection.h"
#include "server/store/postgres_database.h"

namespace stepcast::server {

// The store of operations in a PostgreSQL database, which several replicas share.
//
// Leases and all times are the database's. What two replicas want at once one gets: claims pass
// over what another is just taking, and whoever changes an operation holds its row. Durability: as
// the database's. A call that failed with UNAVAILABLE because the connection broke while it
// committed is done or not; all but a Start without request_id and a Claim may be repeated, and
// what a lost Claim took is free when its lease has run out. Cost: Get, List, Count and Expire are
// one round trip, the rest four to eight; starts take turns. Threads: safe; as many calls at one
// time as the database has connections for.
class PostgresOperationStore final : public OperationStore {
 public:
  // Borrows the database.
  PostgresOperationStore(PostgresDatabase& database, const OperationLimits& limits)
      : connections_(database.connections()), limits_(limits) {}

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
  absl::StatusOr<OperationRecord> StartOn(PostgresConnection& connection,
                                          const NewOperation& operation) const;
  // None: there is nothing to take. A record without its request: it was ended instead, and there
  // may be others.
  absl::StatusOr<std::optional<ClaimedOperation>> ClaimOn(PostgresConnection& connection,
                                                          const OperationClaim& claim) const;
  absl::Status DeleteOn(PostgresConnection& connection, const std::string& id) const;
  // The same as SqliteOperationStore's; `change` is given the database's time, too.
  template <typename Change>
  absl::StatusOr<OperationRecord> Update(const std::string& id, Change change);

  PostgresConnectionPool& connections_;
  const OperationLimits limits_;
};

// The shards of operations in a PostgreSQL database.
//
// Whoever takes a shard passes over one that another is just taking. Cost: Open is three or four
// round trips, the rest one each. Threads: safe.
class PostgresShardStore final : public ShardStore {
 public:
  // Borrows the database.
  explicit PostgresShardStore(PostgresDatabase& database) : connections_(database.connections()) {}

  absl::StatusOr<ShardPlan> Open(const ShardLoop& loop, const ShardPlan& offered) override;
  absl::StatusOr<std::optional<int64_t>> Take(const ShardLoop& loop, int64_t patience_ns) override;
  absl::Status Finish(const ShardLoop& loop, int64_t shard, std::string_view bytes) override;
  absl::StatusOr<std::vector<int64_t>> Finished(const ShardLoop& loop) override;
  absl::StatusOr<std::string> Read(const ShardLoop& loop, int64_t shard) override;
  absl::StatusOr<std::optional<Shared>> FindToHelp(
      const std::string& replica, const std::vector<std::string_view>& but) override;
  absl::StatusOr<ShardCounts> CountShards() override;

 private:
  PostgresConnectionPool& connections_;
};

// Operations as rows of a PostgreSQL database; postgres_operation_rows.cc has these.
//
// Each runs within the caller's transaction. Errors are those of PostgresError.
// Threads: those of the connection.

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
