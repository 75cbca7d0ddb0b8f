// The shards of operations in a PostgreSQL database.
//
// Whoever takes a shard passes over one that another is just taking. Cost: Open is three or four
// round trips, the rest one each. Threads: safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/store/postgres_database.h"
#include "server/store/shard_store.h"

namespace stepcast::server {

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

}  // namespace stepcast::server
