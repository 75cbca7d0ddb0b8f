// One use of a prepared SQLite statement: bind, step, read.
//
// Values are bound to the parameters from left to right and must outlive the use. A failure to
// prepare or to bind is kept and returned by Step. Threads: those of its connection, which must
// outlive it. Destruction makes the statement ready for its next use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3_stmt;

namespace stepcast::server {

class SqliteStatement {
 public:
  // Borrows `statement`, which may be null if `prepared` is an error.
  SqliteStatement(sqlite3_stmt* statement, absl::Status prepared);
  ~SqliteStatement();
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  SqliteStatement& Integer(int64_t value);
  SqliteStatement& Text(std::string_view value);
  SqliteStatement& Blob(std::string_view value);

  // True: there is a row to read. False: done.
  absl::StatusOr<bool> Step();
  // Runs a statement to its end, passing over rows.
  absl::Status Run();

  // Column of the present row, from 0. REQUIRES: the last Step gave true.
  int64_t IntegerAt(int column) const;
  std::string BytesAt(int column) const;  // of a text or a blob; empty for NULL
  bool IsNullAt(int column) const;

 private:
  void Keep(int code);

  sqlite3_stmt* statement_;
  absl::Status status_;
  int bound_ = 0;
};

}  // namespace stepcast::server
