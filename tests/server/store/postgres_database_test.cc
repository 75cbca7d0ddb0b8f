#include "server/store/postgres_database.h"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "server/store/postgres_connection.h"
#include "tests/server/store/postgres_test.h"

namespace stepcast::server::postgres_database_test {
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

class PostgresConnectionPoolTest : public PostgresTest {};

int64_t BackendOf(PostgresConnection& connection) {
  return connection.Run("SELECT pg_backend_pid()")->Integer(0, 0);
}

TEST_F(PostgresConnectionPoolTest, AConnectionIsUsedAgain) {
  PostgresConnectionPool pool(
      {.connection = {.conninfo = server().NewDatabase()}, .connections = 2});
  const int64_t first = BackendOf(**pool.Take());
  EXPECT_EQ(BackendOf(**pool.Take()), first);
}

TEST_F(PostgresConnectionPoolTest, ThereAreNeverMoreThanAllowed) {
  PostgresConnectionPool pool(
      {.connection = {.conninfo = server().NewDatabase()}, .connections = 2});
  std::atomic<int> lent{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 6; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        const auto connection = pool.Take();
        ASSERT_TRUE(connection.ok()) << connection.status();
        const int now = ++lent;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        EXPECT_TRUE((*connection)->Run("SELECT 1").ok());
        --lent;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 2);
}

TEST_F(PostgresConnectionPoolTest, WaitingForAConnectionEnds) {
  PostgresConnectionPool pool(
      {.connection = {.conninfo = server().NewDatabase()}, .connections = 1, .wait_ms = 10});
  const auto taken = pool.Take();
  ASSERT_TRUE(taken.ok());
  const absl::Status refused = pool.Take().status();
  EXPECT_EQ(DetailsOf(refused).reason, "STORE_UNAVAILABLE");
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr("all 1 connections to the database are in use"));
}

TEST_F(PostgresConnectionPoolTest, AConnectionThatBrokeIsReplaced) {
  PostgresConnectionPool pool(
      {.connection = {.conninfo = server().NewDatabase()}, .connections = 1});
  ASSERT_TRUE(pool.Take().ok());
  server().Stop();
  server().Start();
  const auto connection = pool.Take();
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_TRUE((*connection)->Run("SELECT 1").ok());
}

TEST_F(PostgresConnectionPoolTest, ADatabaseThatIsAwayIsTriedAgain) {
  PostgresConnectionPool pool(
      {.connection = {.conninfo = server().NewDatabase()}, .connections = 1});
  server().Stop();
  EXPECT_EQ(DetailsOf(pool.Take().status()).reason, "STORE_UNAVAILABLE");
  server().Start();
  absl::Status status = pool.Take().status();
  while (!status.ok()) status = pool.Take().status();  // until the pause is over
}

TEST_F(PostgresConnectionPoolTest, ATransactionLeftOpenIsNotHandedOn) {
  PostgresConnectionPool pool(
      {.connection = {.conninfo = server().NewDatabase()}, .connections = 1});
  const auto leave_open = [](PostgresConnection& connection) {
    return connection.Script("BEGIN; CREATE TABLE t (a int)");
  };
  ASSERT_TRUE(pool.Run(leave_open).ok());
  const auto connection = pool.Take();
  EXPECT_FALSE((*connection)->InTransaction());
  EXPECT_FALSE((*connection)->Run("SELECT * FROM t").ok());
}

TEST_F(PostgresConnectionPoolTest, WhatAnotherTransactionMadeFailIsRunAgain) {
  PostgresConnectionPool pool(
      {.connection = {.conninfo = server().NewDatabase()}, .connections = 2});
  ASSERT_TRUE(pool.Run([](PostgresConnection& connection) {
                    return connection.Script("CREATE TABLE t (a int); INSERT INTO t VALUES (0)");
                  })
                  .ok());
  int runs = 0;
  const absl::Status done = pool.Run([&](PostgresConnection& connection) {
    ++runs;
    if (absl::Status status =
            connection.Script("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM t");
        !status.ok())
      return status;
    if (runs == 1) {
      const absl::Status between = pool.Run(
          [](PostgresConnection& other) { return other.Script("UPDATE t SET a = a + 1"); });
      EXPECT_TRUE(between.ok()) << between;
    }
    absl::Status status = connection.Script("UPDATE t SET a = a + 1");
    connection.Script(status.ok() ? "COMMIT" : "ROLLBACK").IgnoreError();
    return status;
  });
  EXPECT_TRUE(done.ok()) << done;
  EXPECT_EQ(runs, 2);
  EXPECT_EQ((*pool.Take())->Run("SELECT a FROM t")->Integer(0, 0), 2);
}

}  // namespace
}  // namespace stepcast::server::postgres_database_test
