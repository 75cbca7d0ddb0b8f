#include "server/store/sqlite_statement.h"

#include <sqlite3.h>

#include <utility>

#include "server/store/sqlite_error.h"

namespace stepcast::server {

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

void SqliteStatement::Keep(int code) { status_ = SqliteError(code, "use the profile database"); }

}  // namespace stepcast::server
