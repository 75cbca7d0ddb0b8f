#include "server/store/sqlite_database.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/store/sqlite_schema.h"
#include "server/store/store_error.h"

namespace stepcast::server {

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

}  // namespace

absl::StatusOr<SqliteDatabase::Connections> SqliteDatabase::Connect(
    const DataDirectory& directory, const SqliteDatabaseOptions& options) {
  const SqliteConnectionOptions to_file = {.path = directory.File(kFile),
                                           .busy_timeout_ms = options.busy_timeout_ms};
  absl::StatusOr<std::unique_ptr<SqliteConnection>> writer = SqliteConnection::Open(to_file);
  if (!writer.ok()) return writer.status();
  // The schema first: a file that is not ours is left as it was.
  if (absl::Status status = MigrateSchema(**writer, SchemaMigrations()); !status.ok())
    return status;
  if (absl::Status status = UseWriteAheadLog(**writer); !status.ok()) return status;
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
  absl::StatusOr<Connections> connections = Connect(*directory, options);
  if (!connections.ok()) return InDirectory(directory->path(), connections.status());
  return std::unique_ptr<SqliteDatabase>(
      new SqliteDatabase(*std::move(directory), *std::move(connections)));
}

SqliteDatabase::SqliteDatabase(DataDirectory directory, Connections connections)
    : directory_(std::move(directory)),
      writer_(std::move(connections.writer)),
      readers_(std::move(connections.readers)) {}

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

}  // namespace stepcast::server
