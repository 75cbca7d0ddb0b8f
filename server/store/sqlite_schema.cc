#include "server/store/sqlite_schema.h"

#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/store/sqlite_connection.h"

namespace stepcast::server {

namespace {

// Contents are apart from what lists need, so that a scan does not pass over them. Ids compare
// bytewise, SQLite's default. AUTOINCREMENT: a sequence number never comes back, so what refers to
// a deleted profile cannot mean a later one. `totals` has one row, kept by triggers inside every
// transaction: counting anew would make each put O(profiles).
constexpr char kSqliteVersion1[] = R"sql(
CREATE TABLE profiles (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  digest TEXT NOT NULL,
  etag TEXT NOT NULL,
  display_name TEXT NOT NULL,
  model TEXT NOT NULL,
  framework TEXT NOT NULL,
  batch_size INTEGER NOT NULL,
  parameter_servers INTEGER NOT NULL,
  operation_count INTEGER NOT NULL,
  step_count INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  create_time_ns INTEGER NOT NULL,
  content_bytes INTEGER NOT NULL
) STRICT;
CREATE TABLE labels (
  profile INTEGER NOT NULL REFERENCES profiles (sequence) ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (profile, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE contents (
  profile INTEGER PRIMARY KEY REFERENCES profiles (sequence) ON DELETE CASCADE,
  checksum INTEGER NOT NULL,
  bytes BLOB NOT NULL
) STRICT;
CREATE TABLE requests (
  sequence INTEGER PRIMARY KEY,
  request_id TEXT NOT NULL UNIQUE,
  profile_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  etag TEXT NOT NULL,
  create_time_ns INTEGER NOT NULL
) STRICT;
CREATE TABLE totals (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  profiles INTEGER NOT NULL,
  content_bytes INTEGER NOT NULL
) STRICT;
INSERT INTO totals VALUES (1, 0, 0);
CREATE TRIGGER profile_added AFTER INSERT ON profiles BEGIN
  UPDATE totals SET profiles = profiles + 1, content_bytes = content_bytes + new.content_bytes;
END;
CREATE TRIGGER profile_removed AFTER DELETE ON profiles BEGIN
  UPDATE totals SET profiles = profiles - 1, content_bytes = content_bytes - old.content_bytes;
END;
)sql";

// Bytes are apart, so that looking for an operation to take or counting does not pass over them:
// the request of an open one, the result of a done one. No promise hangs on the order of states but
// that 0 and 1 are open.
constexpr char kSqliteVersion2[] = R"sql(
CREATE TABLE operations (
  id TEXT PRIMARY KEY,
  method TEXT NOT NULL,
  owner TEXT NOT NULL,
  request_id TEXT NOT NULL,
  request_digest TEXT NOT NULL,
  state INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  released INTEGER NOT NULL,
  replica TEXT NOT NULL,
  lease_until_ns INTEGER NOT NULL,
  progress INTEGER NOT NULL,
  cancel_requested INTEGER NOT NULL,
  create_time_ns INTEGER NOT NULL,
  start_time_ns INTEGER NOT NULL,
  end_time_ns INTEGER NOT NULL,
  byte_count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX operation_requests ON operations (owner, request_id) WHERE request_id <> '';
CREATE INDEX operation_states ON operations (state, id, lease_until_ns, byte_count);
CREATE TABLE operation_bytes (
  operation TEXT PRIMARY KEY REFERENCES operations (id) ON DELETE CASCADE,
  bytes BLOB NOT NULL
) STRICT;
)sql";

// Profiles of before belong to nobody. `owners` has a row for each client that has profiles and a
// name, kept as `totals` is and for the same reason.
constexpr char kSqliteVersion3[] = R"sql(
ALTER TABLE profiles ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE requests ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE TABLE owners (
  owner TEXT PRIMARY KEY,
  profiles INTEGER NOT NULL,
  content_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER owned_profile_added AFTER INSERT ON profiles WHEN new.owner <> '' BEGIN
  INSERT INTO owners VALUES (new.owner, 1, new.content_bytes)
    ON CONFLICT (owner) DO UPDATE SET profiles = profiles + 1, content_bytes = content_bytes + excluded.content_bytes;
END;
CREATE TRIGGER owned_profile_removed AFTER DELETE ON profiles WHEN old.owner <> '' BEGIN
  UPDATE owners SET profiles = profiles - 1, content_bytes = content_bytes - old.content_bytes WHERE owner = old.owner;
  DELETE FROM owners WHERE owner = old.owner AND profiles = 0;
END;
)sql";

// A profile of before was never changed.
constexpr char kSqliteVersion4[] = R"sql(
ALTER TABLE profiles ADD COLUMN update_time_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE requests ADD COLUMN update_time_ns INTEGER NOT NULL DEFAULT 0;
UPDATE profiles SET update_time_ns = create_time_ns;
UPDATE requests SET update_time_ns = create_time_ns;
)sql";

constexpr char kSqliteVersion5[] = R"sql(
ALTER TABLE operations ADD COLUMN expected INTEGER NOT NULL DEFAULT 0;
)sql";

constexpr const char* kSqliteMigrations[] = {kSqliteVersion1, kSqliteVersion2, kSqliteVersion3,
                                             kSqliteVersion4, kSqliteVersion5};
static_assert(std::size(kSqliteMigrations) == kSchemaVersion);

absl::Status TooNewForSqlite(int64_t version, size_t known) {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat("the profile database has schema version ", version,
                                ", this program knows up to ", known, "; use a newer program"),
                   {.reason = "STORE_SCHEMA_TOO_NEW",
                    .metadata = {{"schema_version", absl::StrCat(version)},
                                 {"known_schema_version", absl::StrCat(known)}}});
}

absl::Status Foreign(int64_t application_id) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      absl::StrCat("the file is the database of another program (application_id ", application_id,
                   ")"),
      {.reason = "STORE_FOREIGN", .metadata = {{"application_id", absl::StrCat(application_id)}}});
}

absl::Status CheckIsOurs(SqliteConnection& connection) {
  const absl::StatusOr<int64_t> application_id = connection.IntegerOf("PRAGMA application_id");
  if (!application_id.ok()) return application_id.status();
  if (*application_id == kSqliteApplicationId) return absl::OkStatus();
  const absl::StatusOr<int64_t> tables = connection.IntegerOf("SELECT count(*) FROM sqlite_schema");
  if (!tables.ok()) return tables.status();
  return *application_id == 0 && *tables == 0 ? absl::OkStatus() : Foreign(*application_id);
}

absl::Status Apply(SqliteConnection& connection, const char* migration, size_t next_version) {
  SqliteTransaction transaction(connection, SqliteTransaction::Kind::kWrite);
  if (!transaction.status().ok()) return transaction.status();
  if (absl::Status status = connection.Execute(migration); !status.ok()) return status;
  const std::string mark = absl::StrCat("PRAGMA application_id = ", kSqliteApplicationId,
                                        "; PRAGMA user_version = ", next_version);
  if (absl::Status status = connection.Execute(mark); !status.ok()) return status;
  return transaction.Commit();
}

}  // namespace

std::span<const char* const> SchemaMigrations() { return kSqliteMigrations; }

absl::Status CheckSchema(SqliteConnection& connection) {
  if (absl::Status ours = CheckIsOurs(connection); !ours.ok()) return ours;
  const absl::StatusOr<int64_t> version = connection.IntegerOf("PRAGMA user_version");
  if (!version.ok()) return version.status();
  if (*version == 0) return Foreign(0);
  return *version < 0 || *version > kSchemaVersion ? TooNewForSqlite(*version, kSchemaVersion)
                                                   : absl::OkStatus();
}

absl::Status MigrateSchema(SqliteConnection& connection, std::span<const char* const> migrations) {
  if (absl::Status ours = CheckIsOurs(connection); !ours.ok()) return ours;
  const absl::StatusOr<int64_t> version = connection.IntegerOf("PRAGMA user_version");
  if (!version.ok()) return version.status();
  if (*version < 0 || static_cast<size_t>(*version) > migrations.size())
    return TooNewForSqlite(*version, migrations.size());
  for (size_t next = static_cast<size_t>(*version); next < migrations.size(); ++next) {
    if (absl::Status status = Apply(connection, migrations[next], next + 1); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

}  // namespace stepcast::server
