#include "server/store/sqlite_database.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "tests/server/store/temporary_directory.h"

namespace stepcast::server::sqlite_database_test {
namespace {

class SqliteSchemaTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<SqliteConnection>> opened =
        SqliteConnection::Open({.path = absl::StrCat(directory_.path(), "/test.sqlite3")});
    ASSERT_TRUE(opened.ok()) << opened.status();
    connection_ = *std::move(opened);
  }

  int64_t Integer(const std::string& sql) {
    const absl::StatusOr<int64_t> value = connection_->IntegerOf(sql);
    EXPECT_TRUE(value.ok()) << value.status();
    return value.value_or(-1);
  }

  TemporaryDirectory directory_;
  std::unique_ptr<SqliteConnection> connection_;
};

TEST_F(SqliteSchemaTest, ANewFileGetsTodaysSchemaAndIsMarkedAsOurs) {
  ASSERT_TRUE(MigrateSchema(*connection_, SchemaMigrations()).ok());
  EXPECT_EQ(Integer("PRAGMA user_version"), kSchemaVersion);
  EXPECT_EQ(Integer("PRAGMA application_id"), kSqliteApplicationId);
}

TEST_F(SqliteSchemaTest, MigratingAgainChangesNothing) {
  ASSERT_TRUE(MigrateSchema(*connection_, SchemaMigrations()).ok());
  const int64_t before = Integer("PRAGMA schema_version");
  ASSERT_TRUE(MigrateSchema(*connection_, SchemaMigrations()).ok());
  EXPECT_EQ(Integer("PRAGMA schema_version"), before);
}

TEST_F(SqliteSchemaTest, AnOlderFileGoesForwardAndKeepsItsRows) {
  const std::vector<const char*> old = {"CREATE TABLE t (a); INSERT INTO t VALUES (7)"};
  const std::vector<const char*> today = {old[0], "ALTER TABLE t ADD COLUMN b DEFAULT 1",
                                          "UPDATE t SET b = a + b"};
  ASSERT_TRUE(MigrateSchema(*connection_, old).ok());
  ASSERT_EQ(Integer("PRAGMA user_version"), 1);
  ASSERT_TRUE(MigrateSchema(*connection_, today).ok());
  EXPECT_EQ(Integer("PRAGMA user_version"), 3);
  EXPECT_EQ(Integer("SELECT b FROM t"), 8);
}

TEST_F(SqliteSchemaTest, AMigrationThatFailsLeavesTheVersionBeforeIt) {
  const std::vector<const char*> broken = {"CREATE TABLE t (a)",
                                           "CREATE TABLE u (a); INSERT INTO nowhere VALUES (1)"};
  EXPECT_FALSE(MigrateSchema(*connection_, broken).ok());
  EXPECT_EQ(Integer("PRAGMA user_version"), 1);
  EXPECT_EQ(Integer("SELECT count(*) FROM sqlite_schema WHERE name = 't'"), 1);
  EXPECT_EQ(Integer("SELECT count(*) FROM sqlite_schema WHERE name = 'u'"), 0);
}

TEST_F(SqliteSchemaTest, ANewerFileIsRefusedAndLeftAlone) {
  ASSERT_TRUE(MigrateSchema(*connection_, SchemaMigrations()).ok());
  ASSERT_TRUE(
      connection_->Execute(absl::StrCat("PRAGMA user_version = ", kSchemaVersion + 1)).ok());
  const absl::Status refused = MigrateSchema(*connection_, SchemaMigrations());
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailsOf(refused).reason, "STORE_SCHEMA_TOO_NEW");
  EXPECT_EQ(DetailsOf(refused).metadata.at("schema_version"), absl::StrCat(kSchemaVersion + 1));
  EXPECT_EQ(DetailsOf(refused).metadata.at("known_schema_version"), absl::StrCat(kSchemaVersion));
  EXPECT_EQ(Integer("PRAGMA user_version"), kSchemaVersion + 1);
}

TEST_F(SqliteSchemaTest, AnotherProgramsFileIsRefused) {
  for (const char* made_by_another : {"CREATE TABLE theirs (a)", "PRAGMA application_id = 42"}) {
    ASSERT_TRUE(connection_->Execute(made_by_another).ok());
    const absl::Status refused = MigrateSchema(*connection_, SchemaMigrations());
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << made_by_another;
    EXPECT_EQ(DetailsOf(refused).reason, "STORE_FOREIGN");
    EXPECT_EQ(Integer("PRAGMA user_version"), 0);
  }
}

TEST_F(SqliteSchemaTest, ListingNeedsNoSort) {
  ASSERT_TRUE(MigrateSchema(*connection_, SchemaMigrations()).ok());
  SqliteStatement plan = connection_->Use(
      "EXPLAIN QUERY PLAN SELECT p.digest, l.key FROM profiles AS p LEFT JOIN labels AS l ON "
      "l.profile = p.sequence WHERE p.id > 'a' ORDER BY p.id");
  int steps = 0;
  while (*plan.Step()) {
    ++steps;
    EXPECT_EQ(plan.BytesAt(3).find("TEMP B-TREE"), std::string::npos) << plan.BytesAt(3);
    EXPECT_EQ(plan.BytesAt(3).rfind("SEARCH", 0), 0) << plan.BytesAt(3);
  }
  EXPECT_EQ(steps, 2);
}

}  // namespace
}  // namespace stepcast::server::sqlite_database_test
