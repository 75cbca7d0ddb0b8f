// The rows that one statement of PostgreSQL gave.
//
// Rows and columns count from 0; what a column is asked for must be its type, as the statement
// selects it. Threads: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pg_result;

namespace stepcast::server {

class PostgresResult {
 public:
  explicit PostgresResult(pg_result* result) : result_(result) {}

  int rows() const;
  // Rows that an INSERT, UPDATE or DELETE changed.
  int64_t changed() const;
  bool IsNull(int row, int column) const;
  int64_t Integer(int row, int column) const;  // of a bigint, integer or boolean
  std::string_view Bytes(int row, int column)
      const;  // of a bytea or text; empty for NULL; valid as long as the result
  std::vector<std::string> BytesArray(
      int row, int column) const;  // of a bytea[] without nulls; empty for what is none

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

}  // namespace stepcast::server
