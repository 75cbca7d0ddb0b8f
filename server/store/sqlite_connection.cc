#include "server/store/sqlite_connection.h"

#include <sqlite3.h>

#include <utility>

#include "absl/strings/str_cat.h"

#include "server/store/sqlite_error.h"

namespace stepcast::server {

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(
    const SqliteConnectionOptions& options) {
  sqlite3* database = nullptr;
  // Every connection is used by one thread at a time, so SQLite need not lock it.
  constexpr int kFlags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(options.path.c_str(), &database, kFlags, nullptr);
  std::unique_ptr<SqliteConnection> connection(
      new SqliteConnection(database));  // to be closed even if it could not be opened
  if (code != SQLITE_OK) return SqliteError(code, absl::StrCat("open ", options.path));
  sqlite3_busy_timeout(database, options.busy_timeout_ms);
  const absl::Status set = connection->Execute(
      "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA "
      "cell_size_check = ON; "
      "PRAGMA journal_size_limit = 67108864;");
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
    return {nullptr, SqliteError(code, absl::StrCat("prepare \"", std::string(sql), "\""))};
  statements_.emplace(std::string(sql), statement);
  return {statement, absl::OkStatus()};
}

absl::Status SqliteConnection::Execute(const std::string& script) {
  return SqliteError(sqlite3_exec(database_, script.c_str(), nullptr, nullptr, nullptr),
                     "use the profile database");
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
  if (copy == nullptr) return SqliteError(sqlite3_extended_errcode(other.database_), kDoing);
  const int code =
      sqlite3_backup_step(copy, -1);  // all in one step, which is one reading transaction
  const int finished = sqlite3_backup_finish(copy);
  if (finished != SQLITE_OK) return SqliteError(finished, kDoing);
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
