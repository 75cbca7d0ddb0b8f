#include "server/store/postgres_database.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/store/disk.h"
#include "server/store/postgres_connection.h"
#include "server/store/store_error.h"

namespace stepcast::server {

namespace {

// Texts are bytea: they may hold any byte, and compare bytewise whatever the database's collation
// is. `stepcast_totals` has one row, kept by triggers inside every transaction: counting anew would
// make each put O(profiles). To lock it is to be the one who writes. Its `deletions` tells replicas
// whether they have missed a notification. A content is stored before its profile, outside that
// lock, hence the deferred reference. EXTERNAL: not compressed, which takes longer than it saves.
constexpr char kPostgresVersion1[] = R"sql(
CREATE TABLE stepcast_profiles (
  sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id bytea NOT NULL UNIQUE,
  digest bytea NOT NULL,
  etag bytea NOT NULL,
  display_name bytea NOT NULL,
  model bytea NOT NULL,
  framework bytea NOT NULL,
  label_keys bytea[] NOT NULL,
  label_values bytea[] NOT NULL,
  batch_size bigint NOT NULL,
  parameter_servers bigint NOT NULL,
  operation_count bigint NOT NULL,
  step_count bigint NOT NULL,
  size_bytes bigint NOT NULL,
  create_time_ns bigint NOT NULL,
  content_bytes bigint NOT NULL
);
CREATE TABLE stepcast_contents (
  profile bigint PRIMARY KEY REFERENCES stepcast_profiles ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  checksum bigint NOT NULL,
  bytes bytea NOT NULL
);
ALTER TABLE stepcast_contents ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TABLE stepcast_requests (
  sequence bigint PRIMARY KEY,
  request_id bytea NOT NULL UNIQUE,
  profile_id bytea NOT NULL,
  digest bytea NOT NULL,
  etag bytea NOT NULL,
  create_time_ns bigint NOT NULL
);
CREATE TABLE stepcast_totals (
  only_row boolean PRIMARY KEY CHECK (only_row),
  profiles bigint NOT NULL,
  content_bytes bigint NOT NULL,
  deletions bigint NOT NULL
);
INSERT INTO stepcast_totals VALUES (true, 0, 0, 0);
CREATE FUNCTION stepcast_profile_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE stepcast_totals SET profiles = profiles + 1, content_bytes = content_bytes + new.content_bytes;
  RETURN NULL;
END $$;
CREATE FUNCTION stepcast_profile_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE stepcast_totals SET profiles = profiles - 1, content_bytes = content_bytes - old.content_bytes, deletions = deletions + 1;
  NOTIFY stepcast_profile_removed;
  RETURN NULL;
END $$;
CREATE TRIGGER stepcast_profile_added AFTER INSERT ON stepcast_profiles FOR EACH ROW EXECUTE FUNCTION stepcast_profile_added();
CREATE TRIGGER stepcast_profile_removed AFTER DELETE ON stepcast_profiles FOR EACH ROW EXECUTE FUNCTION stepcast_profile_removed();
)sql";

// Leases run on the database's clock, whatever those of the replicas say. Bytes are apart as in
// SQLite: the request of an open operation, the result of a done one.
constexpr char kPostgresVersion2[] = R"sql(
CREATE FUNCTION stepcast_now_ns() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000
$$;
CREATE TABLE stepcast_operations (
  id bytea PRIMARY KEY,
  method bytea NOT NULL,
  owner bytea NOT NULL,
  request_id bytea NOT NULL,
  request_digest bytea NOT NULL,
  state bigint NOT NULL,
  attempts bigint NOT NULL,
  released bigint NOT NULL,
  replica bytea NOT NULL,
  lease_until_ns bigint NOT NULL,
  progress bigint NOT NULL,
  cancel_requested bigint NOT NULL,
  create_time_ns bigint NOT NULL,
  start_time_ns bigint NOT NULL,
  end_time_ns bigint NOT NULL,
  byte_count bigint NOT NULL
);
CREATE UNIQUE INDEX stepcast_operation_requests ON stepcast_operations (owner, request_id) WHERE request_id <> '';
CREATE INDEX stepcast_operations_open ON stepcast_operations (id) WHERE state <= 1;
CREATE TABLE stepcast_operation_bytes (
  operation bytea PRIMARY KEY REFERENCES stepcast_operations ON DELETE CASCADE,
  bytes bytea NOT NULL
);
ALTER TABLE stepcast_operation_bytes ALTER COLUMN bytes SET STORAGE EXTERNAL;
)sql";

// Profiles of before belong to nobody, as those of a replica do that is older than this.
// `stepcast_owners` has a row for each client that has profiles and a name, kept as the totals are
// and for the same reason. Triggers fire in the order of their names: these lock a client's row
// after that of the totals, as a put does, so that a deletion by hand and a put never wait for each
// other.
constexpr char kPostgresVersion3[] = R"sql(
ALTER TABLE stepcast_profiles ADD COLUMN owner bytea NOT NULL DEFAULT '';
ALTER TABLE stepcast_requests ADD COLUMN owner bytea NOT NULL DEFAULT '';
CREATE TABLE stepcast_owners (
  owner bytea PRIMARY KEY,
  profiles bigint NOT NULL,
  content_bytes bigint NOT NULL
);
CREATE FUNCTION stepcast_profile_added_to_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO stepcast_owners AS o VALUES (new.owner, 1, new.content_bytes)
    ON CONFLICT (owner) DO UPDATE SET profiles = o.profiles + 1, content_bytes = o.content_bytes + excluded.content_bytes;
  RETURN NULL;
END $$;
CREATE FUNCTION stepcast_profile_removed_from_owner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE stepcast_owners SET profiles = profiles - 1, content_bytes = content_bytes - old.content_bytes WHERE owner = old.owner;
  DELETE FROM stepcast_owners WHERE owner = old.owner AND profiles = 0;
  RETURN NULL;
END $$;
CREATE TRIGGER stepcast_profile_added_to_owner AFTER INSERT ON stepcast_profiles FOR EACH ROW WHEN (new.owner <> '')
  EXECUTE FUNCTION stepcast_profile_added_to_owner();
CREATE TRIGGER stepcast_profile_removed_from_owner AFTER DELETE ON stepcast_profiles FOR EACH ROW WHEN (old.owner <> '')
  EXECUTE FUNCTION stepcast_profile_removed_from_owner();
)sql";

// 0: of before, or of a replica that is older than this; then it is when the profile was created.
constexpr char kPostgresVersion4[] = R"sql(
ALTER TABLE stepcast_profiles ADD COLUMN update_time_ns bigint NOT NULL DEFAULT 0;
ALTER TABLE stepcast_requests ADD COLUMN update_time_ns bigint NOT NULL DEFAULT 0;
)sql";

// Loops of operations that run, and their shards; taken_ns 0: nobody has; bytes: it is finished.
// They go with their operation, and with its end.
constexpr char kPostgresVersion5[] = R"sql(
ALTER TABLE stepcast_operations ADD COLUMN expected bigint NOT NULL DEFAULT 0;
CREATE TABLE stepcast_loops (
  operation bytea NOT NULL REFERENCES stepcast_operations ON DELETE CASCADE,
  loop bigint NOT NULL,
  first bigint NOT NULL,
  count bigint NOT NULL,
  shards bigint NOT NULL,
  PRIMARY KEY (operation, loop)
);
CREATE TABLE stepcast_shards (
  operation bytea NOT NULL,
  loop bigint NOT NULL,
  shard bigint NOT NULL,
  taken_ns bigint NOT NULL,
  bytes bytea,
  PRIMARY KEY (operation, loop, shard),
  FOREIGN KEY (operation, loop) REFERENCES stepcast_loops ON DELETE CASCADE
);
ALTER TABLE stepcast_shards ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE INDEX stepcast_shards_open ON stepcast_shards (operation) WHERE bytes IS NULL;
CREATE FUNCTION stepcast_operation_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM stepcast_loops WHERE operation = new.id;
  RETURN NULL;
END $$;
CREATE TRIGGER stepcast_operation_ended AFTER UPDATE OF state ON stepcast_operations FOR EACH ROW
  WHEN (new.state > 1 AND old.state <= 1) EXECUTE FUNCTION stepcast_operation_ended();
)sql";

constexpr const char* kPostgresMigrations[] = {
    kPostgresVersion1, kPostgresVersion2, kPostgresVersion3, kPostgresVersion4, kPostgresVersion5};

// One at a time in a database; the number is "STPC".
constexpr char kLock[] = "SELECT pg_advisory_xact_lock(1398034499)";
constexpr char kDuplicateTable[] = "42P07";
constexpr char kDuplicateFunction[] = "42723";

absl::Status TooNewForPostgres(int64_t version, size_t known) {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat("the database has schema version ", version,
                                ", this program knows up to ", known, "; use a newer program"),
                   {.reason = "STORE_SCHEMA_TOO_NEW",
                    .metadata = {{"schema_version", absl::StrCat(version)},
                                 {"known_schema_version", absl::StrCat(known)}}});
}

absl::Status OrForeign(const absl::Status& status) {
  ErrorDetails details = DetailsOf(status);
  const auto state = details.metadata.find("sqlstate");
  if (state == details.metadata.end() ||
      (state->second != kDuplicateTable && state->second != kDuplicateFunction))
    return status;
  details.reason = "STORE_FOREIGN";
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat("the database has tables named as Stepcast's that are not: ",
                                std::string(status.message())),
                   details);
}

// 0 where there are no tables yet.
absl::StatusOr<int64_t> Version(PostgresConnection& connection) {
  // Not to_regclass: it may answer from what the session remembers, though a lock that was waited
  // for says otherwise.
  const absl::StatusOr<PostgresResult> there = connection.Run(
      "SELECT count(*) > 0 FROM pg_tables WHERE tablename = 'stepcast_schema' AND schemaname = ANY "
      "(current_schemas(false))");
  if (!there.ok()) return there.status();
  if (there->Integer(0, 0) == 0) return 0;
  const absl::StatusOr<PostgresResult> version =
      connection.Run("SELECT version FROM stepcast_schema");
  if (!version.ok()) return version.status();
  return version->rows() == 1 ? version->Integer(0, 0) : 0;
}

// The next step, unless another process has done it meanwhile.
absl::Status Step(PostgresConnection& connection, std::span<const char* const> migrations) {
  PostgresTransaction transaction(connection);
  if (!transaction.status().ok()) return transaction.status();
  if (absl::Status locked = connection.Run(kLock).status(); !locked.ok()) return locked;
  const absl::StatusOr<int64_t> version = Version(connection);
  if (!version.ok()) return version.status();
  if (*version < 0 || static_cast<size_t>(*version) >= migrations.size()) return absl::OkStatus();
  if (*version == 0) {
    const absl::Status marked = connection.Script(
        "CREATE TABLE stepcast_schema (version bigint NOT NULL); INSERT INTO stepcast_schema "
        "VALUES (0)");
    if (!marked.ok()) return OrForeign(marked);
  }
  if (absl::Status status = connection.Script(migrations[static_cast<size_t>(*version)]);
      !status.ok())
    return OrForeign(status);
  if (absl::Status status = connection.Script("UPDATE stepcast_schema SET version = version + 1");
      !status.ok())
    return status;
  return transaction.Commit();
}

}  // namespace

std::span<const char* const> PostgresMigrations() { return kPostgresMigrations; }

absl::Status MigratePostgres(PostgresConnection& connection,
                             std::span<const char* const> migrations) {
  while (true) {
    const absl::StatusOr<int64_t> version = Version(connection);
    if (!version.ok()) return version.status();
    if (*version < 0 || static_cast<size_t>(*version) > migrations.size())
      return TooNewForPostgres(*version, migrations.size());
    if (static_cast<size_t>(*version) == migrations.size()) return absl::OkStatus();
    if (absl::Status status = Step(connection, migrations); !status.ok()) return status;
  }
}

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
