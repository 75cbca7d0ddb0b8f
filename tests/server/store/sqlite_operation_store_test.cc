#include "server/store/sqlite_operation_store.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"

#include "server/base/clock.h"
#include "server/store/sqlite_database.h"
#include "server/store/sqlite_profile_store.h"
#include "tests/server/store/sample_profile.h"
#include "tests/server/store/temporary_directory.h"

namespace stepcast::server::sqlite_operation_store_test {
namespace {

constexpr int64_t kLease = 1'000'000'000;

class SqliteOperationStoreTest : public testing::Test {
 protected:
  void SetUp() override { Reopen(); }

  void Reopen() {
    store_ = nullptr;
    database_ = nullptr;
    absl::StatusOr<std::unique_ptr<SqliteDatabase>> database =
        SqliteDatabase::Open({.directory = directory_.path()});
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    absl::StatusOr<std::unique_ptr<SqliteOperationStore>> store =
        SqliteOperationStore::Open(*database_, {}, clock_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  TemporaryDirectory directory_;
  FakeClock clock_;
  std::unique_ptr<SqliteDatabase> database_;
  std::unique_ptr<SqliteOperationStore> store_;
};

TEST_F(SqliteOperationStoreTest, EverythingIsThereAfterReopening) {
  const OperationRecord waits = *store_->Start({.method = "m",
                                                .owner = "o",
                                                .request_id = "1",
                                                .request_digest = "d",
                                                .request = "request"});
  clock_.Advance(1);
  const OperationRecord done =
      *store_->Start({.method = "m", .request_digest = "d", .request = "request"});
  ASSERT_TRUE(store_->RequestCancel(done.id).ok());
  const OperationPage before = *store_->List({});
  Reopen();
  const OperationPage after = *store_->List({});
  ASSERT_EQ(after.operations.size(), 2);
  EXPECT_EQ(after.operations[0].record, waits);
  EXPECT_EQ(after.operations[1].record, before.operations[1].record);
  EXPECT_EQ((*store_->Claim({.replica = "r", .lease_ns = kLease}))->request, "request");
}

TEST_F(SqliteOperationStoreTest, WhatAnEarlierProcessHeldIsFreeAtOnceAndCountsAsAnAttempt) {
  const std::string id =
      store_->Start({.method = "m", .request_digest = "d", .request = "request"})->id;
  const ClaimedOperation first = **store_->Claim({.replica = "r", .lease_ns = kLease});
  ASSERT_FALSE(store_->Claim({.replica = "r", .lease_ns = kLease})->has_value());
  Reopen();
  const absl::StatusOr<std::optional<ClaimedOperation>> second =
      store_->Claim({.replica = "r", .lease_ns = kLease});
  ASSERT_TRUE(second.ok() && second->has_value());
  EXPECT_EQ((*second)->record.id, id);
  EXPECT_EQ((*second)->record.attempts, 2);
  EXPECT_EQ((*second)->record.released, 0);
}

TEST_F(SqliteOperationStoreTest, ADeletedOneLeavesNoBytes) {
  const std::string id =
      store_->Start({.method = "m", .request_digest = "d", .request = "request"})->id;
  ASSERT_TRUE(store_->RequestCancel(id).ok());
  ASSERT_TRUE(store_->Delete(id).ok());
  const SqliteConnectionPool::Lease reader = database_->Read();
  EXPECT_EQ(*(*reader).IntegerOf("SELECT count(*) FROM operation_bytes"), 0);
}

TEST_F(SqliteOperationStoreTest, SharesTheFileWithTheProfiles) {
  SqliteProfileStore profiles(*database_, {}, clock_);
  ASSERT_TRUE(profiles.Put(SampleProfile("a", "content"), "").ok());
  ASSERT_TRUE(store_->Start({.method = "m", .request_digest = "d", .request = "request"}).ok());
  EXPECT_TRUE(profiles.Get("a").ok());
  EXPECT_EQ(store_->List({})->operations.size(), 1);
}

TEST_F(SqliteOperationStoreTest, ADatabaseOfTheVersionBeforeGetsTheTables) {
  const TemporaryDirectory old;
  {
    const auto connection =
        SqliteConnection::Open({.path = old.path() + "/" + SqliteDatabase::kFile});
    ASSERT_TRUE(connection.ok()) << connection.status();
    ASSERT_TRUE(MigrateSchema(**connection, SchemaMigrations().first(1)).ok());
    ASSERT_TRUE(
        (*connection)->Execute("INSERT INTO requests VALUES (1, 'r', 'p', 'd', 'e', 0)").ok());
  }
  const auto database = SqliteDatabase::Open({.directory = old.path()});
  ASSERT_TRUE(database.ok()) << database.status();
  const auto store = SqliteOperationStore::Open(**database, {}, clock_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->Start({.method = "m", .request_digest = "d", .request = "request"}).ok());
  EXPECT_EQ(*(*(*database)->Read()).IntegerOf("SELECT count(*) FROM requests"), 1);
}

TEST_F(SqliteOperationStoreTest, LookingForOneToTakeNeedsNoScan) {
  const SqliteConnectionPool::Lease reader = database_->Read();
  SqliteStatement plan = (*reader).Use(
      "EXPLAIN QUERY PLAN SELECT state FROM operations WHERE id = (SELECT min(id) FROM (SELECT "
      "min(id) AS id FROM operations WHERE state = 0 UNION "
      "ALL SELECT min(id) FROM operations WHERE state = 1 AND lease_until_ns <= 5))");
  int searches = 0;
  while (*plan.Step()) {
    const std::string step = plan.BytesAt(3);
    EXPECT_EQ(step.find("SCAN operations"), std::string::npos) << step;
    if (step.find("SEARCH operations") != std::string::npos) ++searches;
  }
  EXPECT_EQ(searches, 3);
}

}  // namespace
}  // namespace stepcast::server::sqlite_operation_store_test
