#include "server/store/postgres_schema.h"

#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "core/base/error.h"
#include "tests/server/store/postgres_test.h"

namespace stepcast::server::postgres_schema_test {
namespace {

class PostgresSchemaTest : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    conninfo_ = server().NewDatabase();
    connection_ = MustConnect(conninfo_);
  }

  int64_t Integer(const char* sql) {
    const absl::StatusOr<PostgresResult> result = connection_->Run(sql);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() && result->rows() == 1 ? result->Integer(0, 0) : -1;
  }

  std::string conninfo_;
  std::unique_ptr<PostgresConnection> connection_;
};

TEST_F(PostgresSchemaTest, ANewDatabaseGetsTodaysSchemaAllOfItUnderOurName) {
  ASSERT_TRUE(MigratePostgres(*connection_, PostgresMigrations()).ok());
  EXPECT_EQ(Integer("SELECT version FROM stepcast_schema"),
            static_cast<int64_t>(PostgresMigrations().size()));
  EXPECT_EQ(Integer("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND "
                    "relname NOT LIKE 'stepcast\\_%'"),
            0);
  EXPECT_EQ(Integer("SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND "
                    "proname NOT LIKE 'stepcast\\_%'"),
            0);
}

TEST_F(PostgresSchemaTest, MigratingAgainOnlyReads) {
  ASSERT_TRUE(MigratePostgres(*connection_, PostgresMigrations()).ok());
  ASSERT_TRUE(connection_->Script("SET default_transaction_read_only = on").ok());
  EXPECT_TRUE(MigratePostgres(*connection_, PostgresMigrations()).ok());
}

TEST_F(PostgresSchemaTest, AnOlderDatabaseGoesForwardAndKeepsItsRows) {
  const std::vector<const char*> old = {
      "CREATE TABLE stepcast_t (a bigint); INSERT INTO stepcast_t VALUES (7)"};
  const std::vector<const char*> today = {old[0],
                                          "ALTER TABLE stepcast_t ADD COLUMN b bigint DEFAULT 1",
                                          "UPDATE stepcast_t SET b = a + b"};
  ASSERT_TRUE(MigratePostgres(*connection_, old).ok());
  ASSERT_EQ(Integer("SELECT version FROM stepcast_schema"), 1);
  ASSERT_TRUE(MigratePostgres(*connection_, today).ok());
  EXPECT_EQ(Integer("SELECT version FROM stepcast_schema"), 3);
  EXPECT_EQ(Integer("SELECT b FROM stepcast_t"), 8);
}

TEST_F(PostgresSchemaTest, AMigrationThatFailsLeavesTheVersionBeforeIt) {
  const std::vector<const char*> broken = {"CREATE TABLE stepcast_t (a bigint)",
                                           "CREATE TABLE stepcast_u (a bigint); SELECT nothing"};
  EXPECT_FALSE(MigratePostgres(*connection_, broken).ok());
  EXPECT_EQ(Integer("SELECT version FROM stepcast_schema"), 1);
  EXPECT_EQ(Integer("SELECT count(*) FROM pg_class WHERE relname = 'stepcast_t'"), 1);
  EXPECT_EQ(Integer("SELECT count(*) FROM pg_class WHERE relname = 'stepcast_u'"), 0);
}

TEST_F(PostgresSchemaTest, ANewerDatabaseIsRefusedAndLeftAlone) {
  ASSERT_TRUE(MigratePostgres(*connection_, PostgresMigrations()).ok());
  ASSERT_TRUE(connection_->Script("UPDATE stepcast_schema SET version = version + 1").ok());
  const absl::Status refused = MigratePostgres(*connection_, PostgresMigrations());
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailsOf(refused).reason, "STORE_SCHEMA_TOO_NEW");
  EXPECT_EQ(DetailsOf(refused).metadata.at("schema_version"),
            std::to_string(PostgresMigrations().size() + 1));
  EXPECT_EQ(DetailsOf(refused).metadata.at("known_schema_version"),
            std::to_string(PostgresMigrations().size()));
}

TEST_F(PostgresSchemaTest, TablesOfOthersWithOurNamesAreRefused) {
  ASSERT_TRUE(connection_->Script("CREATE TABLE stepcast_profiles (theirs bigint)").ok());
  const absl::Status refused = MigratePostgres(*connection_, PostgresMigrations());
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailsOf(refused).reason, "STORE_FOREIGN");
  EXPECT_EQ(Integer("SELECT count(*) FROM pg_class WHERE relname = 'stepcast_schema'"), 0);
}

TEST_F(PostgresSchemaTest, ReplicasThatStartTogetherMigrateOnce) {
  const std::vector<const char*> migrations = {
      "CREATE TABLE stepcast_t (a bigint); INSERT INTO stepcast_t VALUES (0)",
      "UPDATE stepcast_t SET a = a + 1; SELECT pg_sleep(0.1)", "UPDATE stepcast_t SET a = a + 1"};
  std::vector<std::thread> replicas;
  for (int replica = 0; replica < 6; ++replica) {
    replicas.emplace_back([&] {
      const auto connection = MustConnect(conninfo_);
      const absl::Status status = MigratePostgres(*connection, migrations);
      EXPECT_TRUE(status.ok()) << status;
    });
  }
  for (std::thread& replica : replicas) replica.join();
  EXPECT_EQ(Integer("SELECT a FROM stepcast_t"), 2);
  EXPECT_EQ(Integer("SELECT version FROM stepcast_schema"), 3);
}

}  // namespace
}  // namespace stepcast::server::postgres_schema_test
