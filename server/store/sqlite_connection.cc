#include "server/store/sqlite_connection.h"

#include <sqlite3.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/store/disk.h"

namespace stepcast::server {

namespace {

ErrorDetails Details(int code) { return {.metadata = {{"sqlite_code", absl::StrCat(code)}}}; }

// With what the system said to the connection's last call. REQUIRES: that gave the code.
absl::Status ErrorOf(sqlite3* database, int code, std::string_view doing) {
  const int system_error = database == nullptr ? 0 : sqlite3_system_errno(database);
  return SqliteError(code, doing, system_error);
}

}  // namespace

absl::Status SqliteError(int code, std::string_view doing, int system_error) {
  const int primary = code & 0xff;
  const bool met_system = primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN;
  const std::string message = absl::StrCat("cannot ", std::string(doing), ": ",
                                           sqlite3_errstr(code), " (SQLite code ", code, ")");
  ErrorDetails details = Details(code);
  if (code == SQLITE_FULL || (met_system && MeansDiskFull(system_error))) {
    details.metadata["cause"] = message;
    return DiskFull({.where = "the disk",
                     .todo = "free some of it, or make it larger",
                     .metadata = std::move(details.metadata)});
  }
  if (code == SQLITE_IOERR_CORRUPTFS) code = SQLITE_CORRUPT;
  switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
      return absl::OkStatus();
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_PROTOCOL:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
      details.reason = "STORE_UNAVAILABLE";
      details.retry_delay_ms = kRetryDelayMs;
      return MakeError(absl::StatusCode::kUnavailable, message, details);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      details.reason = "STORE_CORRUPT";
      return MakeError(absl::StatusCode::kDataLoss, message, details);
    case SQLITE_TOOBIG:
      details.reason = "STORE_FULL";
      details.quota_subject = "sqlite_value_bytes";
      return MakeError(absl::StatusCode::kResourceExhausted, message, details);
    default:
      details.reason = "STORE_INTERNAL";
      return MakeError(absl::StatusCode::kInternal, message, details);
  }
}

SqliteStatement::SqliteStatement(sqlite3_stmt* statement, absl::Status prepared)
    : statement_(statement), status_(std::move(prepared)) {}

SqliteStatement::~SqliteStatement() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

SqliteStatement& SqliteStatement::Integer(int64_t value) {
  if (status_.ok()) Keep(sqlite3_bind_int64(statement_, ++bound_, value));
  return *this;
}

SqliteStatement& SqliteStatement::Text(std::string_view value) {
  // A null pointer would bind NULL.
  const char* data = value.data() == nullptr ? "" : value.data();
  if (status_.ok())
    Keep(sqlite3_bind_text64(statement_, ++bound_, data, value.size(), SQLITE_STATIC, SQLITE_UTF8));
  return *this;
}

SqliteStatement& SqliteStatement::Blob(std::string_view value) {
  const char* data = value.data() == nullptr ? "" : value.data();
  if (status_.ok())
    Keep(sqlite3_bind_blob64(statement_, ++bound_, data, value.size(), SQLITE_STATIC));
  return *this;
}

absl::StatusOr<bool> SqliteStatement::Step() {
  if (!status_.ok()) return status_;
  const int code = sqlite3_step(statement_);
  Keep(code);
  if (!status_.ok()) return status_;
  return code == SQLITE_ROW;
}

absl::Status SqliteStatement::Run() {
  while (true) {
    const absl::StatusOr<bool> row = Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
  }
}

int64_t SqliteStatement::IntegerAt(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::string SqliteStatement::BytesAt(int column) const {
  // The pointer first: asking for it may convert the value and so change its size.
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return data == nullptr ? std::string()
                         : std::string(static_cast<const char*>(data), static_cast<size_t>(size));
}

bool SqliteStatement::IsNullAt(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

void SqliteStatement::Keep(int code) {
  status_ = ErrorOf(sqlite3_db_handle(statement_), code, "use the profile database");
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(
    const SqliteConnectionOptions& options) {
  sqlite3* database = nullptr;
  // Every connection is used by one thread at a time, so SQLite need not lock it.
  constexpr int kFlags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(options.path.c_str(), &database, kFlags, nullptr);
  std::unique_ptr<SqliteConnection> connection(
      new SqliteConnection(database));  // to be closed even if it could not be opened
  if (code != SQLITE_OK) return ErrorOf(database, code, absl::StrCat("open ", options.path));
  sqlite3_busy_timeout(database, options.busy_timeout_ms);
  const absl::Status set = connection->Execute(
      "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA "
      "cell_size_check = ON;");
  if (!set.ok()) return set;
  return connection;
}

SqliteConnection::~SqliteConnection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(database_);
}

SqliteStatement SqliteConnection::Use(std::string_view sql) {
  const auto found = statements_.find(sql);
  if (found != statements_.end()) return {found->second, absl::OkStatus()};
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(database_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK)
    return {nullptr, ErrorOf(database_, code, absl::StrCat("prepare \"", std::string(sql), "\""))};
  statements_.emplace(std::string(sql), statement);
  return {statement, absl::OkStatus()};
}

absl::Status SqliteConnection::Execute(const std::string& script) {
  const int code = sqlite3_exec(database_, script.c_str(), nullptr, nullptr, nullptr);
  return ErrorOf(database_, code, "use the profile database");
}

absl::StatusOr<int64_t> SqliteConnection::IntegerOf(std::string_view sql) {
  SqliteStatement statement = Use(sql);
  const absl::StatusOr<bool> row = statement.Step();
  if (!row.ok()) return row.status();
  return *row ? statement.IntegerAt(0) : 0;
}

absl::Status SqliteConnection::CopyTo(SqliteConnection& other) {
  constexpr char kDoing[] = "copy the database";
  sqlite3_backup* copy = sqlite3_backup_init(other.database_, "main", database_, "main");
  if (copy == nullptr)
    return ErrorOf(other.database_, sqlite3_extended_errcode(other.database_), kDoing);
  const int code =
      sqlite3_backup_step(copy, -1);  // all in one step, which is one reading transaction
  const int finished = sqlite3_backup_finish(copy);
  if (finished != SQLITE_OK) return ErrorOf(other.database_, finished, kDoing);
  // Busy and locked are no errors to the function above.
  return SqliteError(code, kDoing);
}

bool SqliteConnection::InTransaction() const { return sqlite3_get_autocommit(database_) == 0; }

bool SqliteConnection::FileIsGone() const {
  int moved = 0;
  return sqlite3_file_control(database_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK ||
         moved != 0;
}

}  // namespace stepcast::server
