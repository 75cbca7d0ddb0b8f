#include "server/store/sqlite_database.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store_error.h"

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

SqliteConnectionPool::Lease::Lease(SqliteConnectionPool& pool,
                                   std::unique_ptr<SqliteConnection> connection)
    : pool_(pool), connection_(std::move(connection)) {}

SqliteConnectionPool::Lease::~Lease() {
  {
    MutexLock lock(pool_.mutex_);
    pool_.free_.push_back(std::move(connection_));
  }
  pool_.returned_.NotifyOne();
}

SqliteConnectionPool::Lease SqliteConnectionPool::Take() {
  MutexLock lock(mutex_);
  while (free_.empty()) returned_.Wait(mutex_);
  std::unique_ptr<SqliteConnection> connection = std::move(free_.back());
  free_.pop_back();
  return {*this, std::move(connection)};
}

namespace {

absl::Status InDirectory(const std::string& directory, const absl::Status& status) {
  ErrorDetails details = DetailsOf(status);
  details.metadata["directory"] = directory;
  return MakeError(status.code(),
                   absl::StrCat("data directory ", directory, ": ", std::string(status.message())),
                   std::move(details));
}

// Readers need not wait for the writer, nor it for them, only with a write-ahead log.
absl::Status UseWriteAheadLog(SqliteConnection& connection) {
  SqliteStatement pragma = connection.Use("PRAGMA journal_mode = WAL");
  const absl::StatusOr<bool> row = pragma.Step();
  if (!row.ok()) return row.status();
  const std::string mode = *row ? pragma.BytesAt(0) : "";
  return mode == "wal"
             ? absl::OkStatus()
             : StoreUnavailable(absl::StrCat(
                   "the file system allows no write-ahead log, only journal mode ", mode));
}

// The log is brought into the database after so much of it that the reserve has room for that and
// for as much again; one that grew beyond it is cut when it is begun anew.
absl::Status BoundLog(SqliteConnection& connection, int64_t reserve_bytes) {
  constexpr int64_t kLeastPages = 16;
  constexpr int64_t kMostPages = 1000;  // SQLite's own
  const absl::StatusOr<int64_t> page = connection.IntegerOf("PRAGMA page_size");
  if (!page.ok()) return page.status();
  const int64_t pages = reserve_bytes == 0
                            ? kMostPages
                            : std::clamp(reserve_bytes / 2 / *page, kLeastPages, kMostPages);
  return connection.Execute(
      absl::StrCat("PRAGMA wal_autocheckpoint = ", pages,
                   "; PRAGMA journal_size_limit = ", std::max(pages * *page, reserve_bytes)));
}

absl::Status FullAt(const std::string& directory, std::map<std::string, std::string> metadata) {
  metadata["directory"] = directory;
  return DiskFull({.where = absl::StrCat("the disk of the data directory ", directory),
                   .todo = "delete profiles that nobody needs any more, or make its volume larger; "
                           "what is stored is still answered",
                   .metadata = std::move(metadata)});
}

}  // namespace

absl::StatusOr<SqliteDatabase::Connections> SqliteDatabase::Connect(
    const DataDirectory& directory, const SqliteDatabaseOptions& options, int64_t reserve_bytes) {
  const SqliteConnectionOptions to_file = {.path = directory.File(kFile),
                                           .busy_timeout_ms = options.busy_timeout_ms};
  absl::StatusOr<std::unique_ptr<SqliteConnection>> writer = SqliteConnection::Open(to_file);
  if (!writer.ok()) return writer.status();
  // The schema first: a file that is not ours is left as it was.
  if (absl::Status status = MigrateSchema(**writer, SchemaMigrations()); !status.ok())
    return status;
  if (absl::Status status = UseWriteAheadLog(**writer); !status.ok()) return status;
  if (absl::Status status = BoundLog(**writer, reserve_bytes); !status.ok()) return status;
  Connections connections{.writer = *std::move(writer), .readers = {}};
  for (int i = 0; i < options.readers; ++i) {
    absl::StatusOr<std::unique_ptr<SqliteConnection>> reader = SqliteConnection::Open(to_file);
    if (!reader.ok()) return reader.status();
    if (absl::Status status = (*reader)->Execute("PRAGMA query_only = ON"); !status.ok())
      return status;
    connections.readers.push_back(*std::move(reader));
  }
  return connections;
}

absl::StatusOr<std::unique_ptr<SqliteDatabase>> SqliteDatabase::Open(
    const SqliteDatabaseOptions& options) {
  absl::StatusOr<DataDirectory> directory = DataDirectory::Own(options.directory);
  if (!directory.ok()) return directory.status();
  auto reserve = std::make_unique<DiskReserve>(directory->path(), kReserveFile);
  absl::StatusOr<Connections> connections = Connect(*directory, options, reserve->bytes());
  if (IsDiskFull(connections.status())) {
    reserve->GiveUp();
    connections = Connect(*directory, options, reserve->bytes());
  }
  if (IsDiskFull(connections.status()))
    return FullAt(directory->path(), DetailsOf(connections.status()).metadata);
  if (!connections.ok()) return InDirectory(directory->path(), connections.status());
  std::unique_ptr<SqliteDatabase> database(
      new SqliteDatabase(*std::move(directory), std::move(reserve), *std::move(connections)));
  return database;
}

SqliteDatabase::SqliteDatabase(DataDirectory directory, std::unique_ptr<DiskReserve> reserve,
                               Connections connections)
    : directory_(std::move(directory)),
      reserve_(std::move(reserve)),
      writer_(std::move(connections.writer)),
      readers_(std::move(connections.readers)) {
  reserve_->Take();
}

SqliteDatabase::Writing::Writing(SqliteDatabase& database)
    : lock_(database.mutex_),
      file_(database.CheckFile(*database.writer_)),
      connection_(*database.writer_) {
  if (file_.ok()) transaction_.emplace(connection_, SqliteTransaction::Kind::kWrite);
}

absl::Status SqliteDatabase::Check() {
  const SqliteConnectionPool::Lease reader = readers_.Take();
  if (absl::Status status = CheckFile(*reader); !status.ok()) return status;
  return (*reader).IntegerOf("SELECT profiles FROM totals").status();
}

absl::Status SqliteDatabase::CheckFile(const SqliteConnection& connection) const {
  if (!connection.FileIsGone()) return absl::OkStatus();
  return StoreUnavailable(absl::StrCat("the database in ", directory_.path(), " was removed"));
}

absl::Status SqliteDatabase::Admit(const Purpose& purpose) {
  if (purpose.bytes == 0 || HasRoomFor(purpose.bytes)) return absl::OkStatus();
  absl::Status full = FullAt(
      directory_.path(), {{"cause", absl::StrCat("no room for ", purpose.bytes,
                                                 " bytes more, in the log and in the database")}});
  Note(purpose, full);
  return full;
}

int64_t SqliteDatabase::Room() {
  const std::optional<DiskSpace> space = Space();
  if (!space) return std::numeric_limits<int64_t>::max() / 4;
  std::error_code error;
  const auto log = std::filesystem::file_size(directory_.File(kFile).append("-wal"), error);
  return space->free_bytes + (error ? 0 : static_cast<int64_t>(log));
}

bool SqliteDatabase::HasRoomFor(int64_t bytes) {
  // About a page in sixty is not content, and some are written with any.
  constexpr int64_t kBeside = int64_t{64} << 10;
  const int64_t written = bytes + bytes / 60 + kBeside;
  const int64_t room = Room();
  if (room >= 2 * written) return true;
  if (room < written) return false;
  const SqliteConnectionPool::Lease reader = readers_.Take();
  const absl::StatusOr<int64_t> unused = (*reader).IntegerOf("PRAGMA freelist_count");
  const absl::StatusOr<int64_t> page = (*reader).IntegerOf("PRAGMA page_size");
  if (!unused.ok() || !page.ok()) return true;
  return room >= written + std::max<int64_t>(0, written - *unused * *page);
}

void SqliteDatabase::Note(const Purpose& purpose, const absl::Status& status) {
  if (status.ok()) reserve_->Take();
  const bool is_full = IsDiskFull(status);
  if (purpose.bytes == 0 || (!is_full && !status.ok())) return;
  // Pages that a failed write has put into the log are of no use to anybody.
  if (is_full) EmptyLog();
  // Some file systems have less room than they say; then there must be more of it.
  const int64_t wanted_room = is_full && HasRoomFor(purpose.bytes) ? Room() + purpose.bytes : 0;
  const MutexLock lock(room_mutex_);
  is_full_ = is_full;
  refused_bytes_ = purpose.bytes;
  wanted_room_ = wanted_room;
}

absl::Status SqliteDatabase::CheckRoom() {
  reserve_->Take();
  const MutexLock lock(room_mutex_);
  if (is_full_ && Room() >= wanted_room_ && HasRoomFor(refused_bytes_)) is_full_ = false;
  return is_full_ ? FullAt(directory_.path(), {}) : absl::OkStatus();
}

void SqliteDatabase::EmptyLog() {
  const MutexLock lock(mutex_);
  // A later write does it where it cannot be done now.
  writer_->Execute("PRAGMA wal_checkpoint(TRUNCATE)").IgnoreError();
}

absl::Status SqliteDatabase::Full(const absl::Status& why) const {
  return FullAt(directory_.path(), DetailsOf(why).metadata);
}

}  // namespace stepcast::server
