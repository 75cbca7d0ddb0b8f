#include "server/store/sqlite_error.h"

#include <sqlite3.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"

namespace stepcast::server::sqlite_error_test {
namespace {

TEST(SqliteErrorTest, SuccessIsOk) {
  for (const int code : {SQLITE_OK, SQLITE_ROW, SQLITE_DONE})
    EXPECT_TRUE(SqliteError(code, "read").ok());
}

TEST(SqliteErrorTest, EachCodeMeansWhatTheCallerCanDo) {
  const struct {
    int sqlite;
    absl::StatusCode code;
    const char* reason;
    bool retry;
  } cases[] = {
      {SQLITE_FULL, absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", true},
      {SQLITE_IOERR_FSYNC, absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", true},
      {SQLITE_READONLY_DBMOVED, absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", true},
      {SQLITE_BUSY_SNAPSHOT, absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", true},
      {SQLITE_CANTOPEN, absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE", true},
      {SQLITE_CORRUPT_INDEX, absl::StatusCode::kDataLoss, "STORE_CORRUPT", false},
      {SQLITE_NOTADB, absl::StatusCode::kDataLoss, "STORE_CORRUPT", false},
      {SQLITE_IOERR_CORRUPTFS, absl::StatusCode::kDataLoss, "STORE_CORRUPT", false},
      {SQLITE_TOOBIG, absl::StatusCode::kResourceExhausted, "STORE_FULL", false},
      {SQLITE_CONSTRAINT_UNIQUE, absl::StatusCode::kInternal, "STORE_INTERNAL", false},
  };
  for (const auto& expected : cases) {
    const absl::Status status = SqliteError(expected.sqlite, "write");
    EXPECT_EQ(status.code(), expected.code) << expected.sqlite;
    EXPECT_EQ(DetailsOf(status).reason, expected.reason) << expected.sqlite;
    EXPECT_EQ(DetailsOf(status).retry_delay_ms > 0, expected.retry) << expected.sqlite;
    EXPECT_EQ(DetailsOf(status).metadata.at("sqlite_code"), std::to_string(expected.sqlite));
    EXPECT_THAT(std::string(status.message()), testing::StartsWith("cannot write: "));
  }
}

}  // namespace
}  // namespace stepcast::server::sqlite_error_test
