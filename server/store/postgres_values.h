// The values of one PostgreSQL statement: its parameters, and the rows that it gave.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pg_result;

namespace stepcast::server {

// The values of one statement's parameters, $1 and on, in the binary form PostgreSQL reads.
//
// Texts go as bytea, so every byte may occur, a zero too, and they compare bytewise; the views
// given must outlive the use.
class PostgresParameters {
 public:
  PostgresParameters& Integer(int64_t value);  // bigint
  PostgresParameters& Bytes(std::string_view value);
  PostgresParameters& NullBytes();
  PostgresParameters& BytesArray(const std::vector<std::string_view>& values);  // bytea[]
  // For functions of PostgreSQL that take a text. REQUIRES: UTF-8 without a zero byte.
  PostgresParameters& Text(std::string_view value);

  // As PQsendQueryParams takes them.
  int count() const { return static_cast<int>(types_.size()); }
  const unsigned* types() const { return types_.data(); }
  const char* const* values() const { return values_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }
  size_t bytes() const { return bytes_; }

 private:
  PostgresParameters& Add(unsigned type, std::string_view value);

  std::deque<std::string> owned_;  // does not move what it has
  std::vector<unsigned> types_;
  std::vector<const char*> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
  size_t bytes_ = 0;
};

// The rows that one statement of PostgreSQL gave.
//
// Rows and columns count from 0; what a column is asked for must be its type, as the statement
// selects it. Threads: none.
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
