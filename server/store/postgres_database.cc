#include "server/store/postgres_database.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"

#include "server/store/disk_space.h"
#include "server/store/postgres_schema.h"
#include "server/store/store_error.h"

namespace stepcast::server {

namespace {

constexpr int64_t kNsPerMs = 1'000'000;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

absl::StatusOr<PostgresConnectionPool::Lease> PostgresConnectionPool::Take() {
  std::unique_ptr<PostgresConnection> connection;
  {
    MutexLock lock(mutex_);
    const int64_t until_ns = NowNs() + options_.wait_ms * kNsPerMs;
    while (lent_ >= options_.connections) {
      const int64_t left_ns = until_ns - NowNs();
      if (left_ns <= 0)
        return StoreUnavailable(
            absl::StrCat("all ", options_.connections, " connections to the database are in use"));
      returned_.WaitFor(mutex_, std::chrono::nanoseconds(left_ns));
    }
    ++lent_;
    if (!free_.empty()) {
      connection = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (connection != nullptr && connection->IsBroken()) connection = nullptr;
  if (connection == nullptr) {
    absl::StatusOr<std::unique_ptr<PostgresConnection>> made = Connect();
    if (!made.ok()) {
      GiveBack(nullptr);
      return made.status();
    }
    connection = *std::move(made);
  }
  return Lease(*this, std::move(connection));
}

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresConnectionPool::Connect() {
  const int64_t start_ns = NowNs();
  {
    MutexLock lock(mutex_);
    if (start_ns < no_attempt_before_ns_) return refused_;
  }
  absl::StatusOr<std::unique_ptr<PostgresConnection>> made =
      PostgresConnection::Open(options_.connection);
  const int64_t end_ns = NowNs();
  MutexLock lock(mutex_);
  refused_ = made.status();
  no_attempt_before_ns_ = made.ok() ? 0
                                    : end_ns + std::clamp(end_ns - start_ns, kMinPauseMs * kNsPerMs,
                                                          kMaxPauseMs * kNsPerMs);
  return made;
}

void PostgresConnectionPool::NoteFull(const absl::Status& status) {
  if (!IsDiskFull(status)) return;
  MutexLock lock(mutex_);
  full_ = status;
  full_until_ns_ = NowNs() + kFullNs;
}

absl::Status PostgresConnectionPool::CheckRoom() {
  MutexLock lock(mutex_);
  return NowNs() < full_until_ns_ ? full_ : absl::OkStatus();
}

void PostgresConnectionPool::GiveBack(std::unique_ptr<PostgresConnection> connection) {
  if (connection != nullptr && (connection->IsBroken() || connection->InTransaction()))
    connection = nullptr;
  {
    MutexLock lock(mutex_);
    --lent_;
    if (connection != nullptr) free_.push_back(std::move(connection));
  }
  returned_.NotifyOne();
}

namespace {

// A migration may rewrite a table.
constexpr int kMigrationTimeoutMs = 600'000;

absl::Status Migrate(PostgresConnectionOptions options) {
  options.statement_timeout_ms = kMigrationTimeoutMs;
  const absl::StatusOr<std::unique_ptr<PostgresConnection>> connection =
      PostgresConnection::Open(options);
  return connection.ok() ? MigratePostgres(**connection, PostgresMigrations())
                         : connection.status();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresDatabase>> PostgresDatabase::Open(
    const PostgresDatabaseOptions& options) {
  if (absl::Status status = Migrate(options.connection); !status.ok()) return status;
  return std::unique_ptr<PostgresDatabase>(new PostgresDatabase(options));
}

}  // namespace stepcast::server
