#include "server/store/sqlite_connection.h"

#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "tests/server/store/temporary_directory.h"

namespace stepcast::server::sqlite_connection_test {
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
      {SQLITE_FULL, absl::StatusCode::kResourceExhausted, "DISK_FULL", false},
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
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("cannot write: "));
  }
}

class SqliteConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<SqliteConnection>> opened =
        SqliteConnection::Open({.path = path_});
    ASSERT_TRUE(opened.ok()) << opened.status();
    connection_ = *std::move(opened);
    ASSERT_TRUE(
        connection_->Execute("CREATE TABLE t (number INTEGER, text TEXT, bytes BLOB)").ok());
  }

  TemporaryDirectory directory_;
  const std::string path_ = absl::StrCat(directory_.path(), "/test.sqlite3");
  std::unique_ptr<SqliteConnection> connection_;
};

TEST_F(SqliteConnectionTest, EveryCommitWaitsForTheDiskAndForeignKeysHold) {
  EXPECT_EQ(*connection_->IntegerOf("PRAGMA synchronous"), 2);
  EXPECT_EQ(*connection_->IntegerOf("PRAGMA foreign_keys"), 1);
}

TEST_F(SqliteConnectionTest, ValuesComeBackAsTheyWereBound) {
  const std::string text("a\0b", 3);
  const std::string bytes("\xff\0\x80", 3);
  ASSERT_TRUE(connection_->Use("INSERT INTO t VALUES (?, ?, ?)")
                  .Integer(INT64_MIN)
                  .Text(text)
                  .Blob(bytes)
                  .Run()
                  .ok());
  SqliteStatement row = connection_->Use("SELECT number, text, bytes, NULL FROM t");
  ASSERT_TRUE(*row.Step());
  EXPECT_EQ(row.IntegerAt(0), INT64_MIN);
  EXPECT_EQ(row.BytesAt(1), text);
  EXPECT_EQ(row.BytesAt(2), bytes);
  EXPECT_TRUE(row.IsNullAt(3));
  EXPECT_FALSE(*row.Step());
}

TEST_F(SqliteConnectionTest, EmptyTextIsNotNull) {
  ASSERT_TRUE(
      connection_->Use("INSERT INTO t VALUES (?, ?, ?)").Integer(0).Text({}).Blob({}).Run().ok());
  EXPECT_EQ(*connection_->IntegerOf("SELECT count(*) FROM t WHERE text = '' AND bytes = x''"), 1);
}

TEST_F(SqliteConnectionTest, AStatementStartsAnewWithEachUse) {
  for (const int64_t number : {7, 8})
    ASSERT_TRUE(connection_->Use("INSERT INTO t (number) VALUES (?)").Integer(number).Run().ok());
  for (int use = 0; use < 3; ++use)
    EXPECT_EQ(*connection_->IntegerOf("SELECT number FROM t ORDER BY number"), 7);
  // Nothing of an earlier use is bound: the parameter is NULL.
  ASSERT_TRUE(connection_->Use("INSERT INTO t (number) VALUES (?)").Run().ok());
  EXPECT_EQ(*connection_->IntegerOf("SELECT count(*) FROM t WHERE number IS NULL"), 1);
}

TEST_F(SqliteConnectionTest, AWrongStatementIsAnErrorAtItsUse) {
  EXPECT_EQ(
      connection_->Use("SELECT nothing FROM nowhere").Integer(1).Text("x").Step().status().code(),
      absl::StatusCode::kInternal);
  EXPECT_EQ(connection_->Use("SELECT 1").Integer(1).Step().status().code(),
            absl::StatusCode::kInternal);
}

TEST_F(SqliteConnectionTest, ATransactionThatIsNotCommittedLeavesNothing) {
  {
    SqliteTransaction transaction(*connection_, SqliteTransaction::Kind::kWrite);
    ASSERT_TRUE(transaction.status().ok());
    ASSERT_TRUE(connection_->Execute("INSERT INTO t (number) VALUES (1)").ok());
    EXPECT_TRUE(connection_->InTransaction());
  }
  EXPECT_FALSE(connection_->InTransaction());
  EXPECT_EQ(*connection_->IntegerOf("SELECT count(*) FROM t"), 0);
}

TEST_F(SqliteConnectionTest, ACommittedTransactionStays) {
  {
    SqliteTransaction transaction(*connection_, SqliteTransaction::Kind::kWrite);
    ASSERT_TRUE(connection_->Execute("INSERT INTO t (number) VALUES (1)").ok());
    ASSERT_TRUE(transaction.Commit().ok());
  }
  EXPECT_EQ(*connection_->IntegerOf("SELECT count(*) FROM t"), 1);
}

TEST_F(SqliteConnectionTest, ALockHeldElsewhereIsUnavailableAfterTheTimeout) {
  const auto other = SqliteConnection::Open({.path = path_, .busy_timeout_ms = 1});
  ASSERT_TRUE(other.ok()) << other.status();
  const SqliteTransaction held(*connection_, SqliteTransaction::Kind::kWrite);
  ASSERT_TRUE(held.status().ok());
  const SqliteTransaction refused(**other, SqliteTransaction::Kind::kWrite);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(SqliteConnectionTest, KnowsWhenItsFileIsGone) {
  EXPECT_FALSE(connection_->FileIsGone());
  std::filesystem::remove(path_);
  EXPECT_TRUE(connection_->FileIsGone());
}

TEST_F(SqliteConnectionTest, OpeningADirectoryIsUnavailable) {
  EXPECT_EQ(SqliteConnection::Open({.path = directory_.path()}).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace stepcast::server::sqlite_connection_test
