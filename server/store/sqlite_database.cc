#include "server/store/sqlite_database.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <system_error>
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
  // What a write that failed has put into the log is of no use to anybody.
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
  // Where it cannot be done now, a later write does it.
  writer_->Execute("PRAGMA wal_checkpoint(TRUNCATE)").IgnoreError();
}

absl::Status SqliteDatabase::Full(const absl::Status& why) const {
  return FullAt(directory_.path(), DetailsOf(why).metadata);
}

}  // namespace stepcast::server
