#include "server/store/postgres_operation_store.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/store/postgres_database.h"
#include "tests/server/store/postgres_test.h"

namespace stepcast::server::postgres_operation_store_test {
namespace {

constexpr int64_t kHour = int64_t{3600} * 1'000'000'000;

class PostgresOperationStoreTest : public PostgresTest {};

std::unique_ptr<PostgresDatabase> Open(const std::string& conninfo) {
  absl::StatusOr<std::unique_ptr<PostgresDatabase>> database =
      PostgresDatabase::Open({.connection = {.conninfo = conninfo}, .connections = 2});
  EXPECT_TRUE(database.ok()) << database.status();
  return database.ok() ? *std::move(database) : nullptr;
}

TEST_F(PostgresOperationStoreTest, ReplicasThatClaimAtOnceNeverGetTheSameAndMissNone) {
  constexpr int kReplicas = 4;
  constexpr int kOperations = 40;
  const std::string conninfo = server().NewDatabase();
  std::vector<std::unique_ptr<PostgresDatabase>> databases;
  for (int i = 0; i < kReplicas; ++i) databases.push_back(Open(conninfo));
  PostgresOperationStore first(*databases[0], {});
  for (int i = 0; i < kOperations; ++i)
    ASSERT_TRUE(first.Start({.method = "m", .request_digest = "d", .request = "r"}).ok());
  std::atomic<int> taken{0};
  std::vector<std::thread> replicas;
  for (int i = 0; i < kReplicas; ++i) {
    replicas.emplace_back([&, i] {
      PostgresOperationStore store(*databases[i], {});
      const std::string name = absl::StrCat("r", i);
      while (taken < kOperations) {
        const absl::StatusOr<std::optional<ClaimedOperation>> claimed =
            store.Claim({.replica = name, .lease_ns = kHour});
        ASSERT_TRUE(claimed.ok()) << claimed.status();
        // None, if others are just taking what is left.
        if (!claimed->has_value()) continue;
        ++taken;
        ASSERT_TRUE(store
                        .Finish({.id = (*claimed)->record.id,
                                 .replica = name,
                                 .number = (*claimed)->record.attempts},
                                {.bytes = name})
                        .ok());
      }
    });
  }
  for (std::thread& replica : replicas) replica.join();
  EXPECT_EQ(taken, kOperations);
  const absl::StatusOr<OperationPage> page = first.List({.limit = kOperations});
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->operations.size(), kOperations);
  for (const StoredOperation& operation : page->operations) {
    EXPECT_EQ(operation.record.attempts, 1);
    EXPECT_EQ(operation.result, operation.record.replica);
  }
}

TEST_F(PostgresOperationStoreTest,
       AnOperationOutlivesTheProcessThatStartedItAndItsLeaseIsTheDatabases) {
  const std::string conninfo = server().NewDatabase();
  std::string id;
  {
    const auto database = Open(conninfo);
    PostgresOperationStore store(*database, {});
    id = store.Start({.method = "m", .request_digest = "d", .request = "request"})->id;
    ASSERT_TRUE(store.Claim({.replica = "gone", .lease_ns = 0})->has_value());
  }
  const auto database = Open(conninfo);
  PostgresOperationStore store(*database, {});
  const absl::StatusOr<std::optional<ClaimedOperation>> claimed =
      store.Claim({.replica = "r", .lease_ns = kHour});
  ASSERT_TRUE(claimed.ok() && claimed->has_value()) << claimed.status();
  EXPECT_EQ((*claimed)->record.id, id);
  EXPECT_EQ((*claimed)->record.attempts, 2);
  EXPECT_EQ((*claimed)->request, "request");
  EXPECT_FALSE(store.Claim({.replica = "r", .lease_ns = kHour})->has_value());
}

TEST_F(PostgresOperationStoreTest, ADatabaseThatIsAwayIsUnavailable) {
  const auto database = Open(server().NewDatabase());
  PostgresOperationStore store(*database, {});
  ASSERT_TRUE(store.Start({.method = "m", .request_digest = "d", .request = "request"}).ok());
  server().Stop();
  EXPECT_TRUE(absl::IsUnavailable(store.Claim({.replica = "r", .lease_ns = kHour}).status()));
  EXPECT_TRUE(absl::IsUnavailable(
      store.Start({.method = "m", .request_digest = "d", .request = "request"}).status()));
  EXPECT_TRUE(absl::IsUnavailable(store.List({}).status()));
}

using testing::ElementsAre;
using testing::IsEmpty;

class PostgresShardStoreTest : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    conninfo_ = server().NewDatabase();
    database_ = Open();
    operations_ = std::make_unique<PostgresOperationStore>(*database_, OperationLimits());
    shards_ = std::make_unique<PostgresShardStore>(*database_);
  }

  std::unique_ptr<PostgresDatabase> Open() {
    return PostgresDatabase::Open({.connection = {.conninfo = conninfo_}, .connections = 2})
        .value();
  }

  // An operation that "owner" runs.
  OperationAttempt Run(const std::string& request) {
    EXPECT_TRUE(
        operations_->Start({.method = "m", .request_digest = "d", .request = request}).ok());
    const OperationRecord record =
        (*operations_->Claim({.replica = "owner", .lease_ns = kHour}))->record;
    return {.id = record.id, .replica = "owner", .number = record.attempts};
  }

  std::string conninfo_;
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<PostgresOperationStore> operations_;
  std::unique_ptr<PostgresShardStore> shards_;
};

TEST_F(PostgresShardStoreTest, TheFirstPlanCountsAndShardsGoFromTakenToFinished) {
  const ShardLoop loop{.operation = Run("request").id, .number = 4};
  const ShardPlan plan = shards_->Open(loop, {.first = 2, .count = 9, .shards = 2}).value();
  EXPECT_EQ(plan.Begin(0), 2);
  EXPECT_EQ(plan.Begin(1), 5);
  EXPECT_EQ(plan.Begin(2), 9);
  const ShardPlan again = shards_->Open(loop, {.first = 1, .count = 9, .shards = 7}).value();
  EXPECT_EQ(again.first, 2);
  EXPECT_EQ(again.shards, 2);
  EXPECT_EQ(shards_->CountShards()->waiting, 2);
  EXPECT_EQ(shards_->Take(loop, kHour).value(), 0);
  EXPECT_EQ(shards_->Take(loop, kHour).value(), 1);
  EXPECT_FALSE(shards_->Take(loop, kHour)->has_value());
  EXPECT_EQ(shards_->CountShards()->waiting, 0);
  EXPECT_EQ(shards_->CountShards()->open, 2);
  // Whoever has the first one is slow.
  EXPECT_EQ(shards_->Take(loop, 0).value(), 0);
  const std::string bytes("a\0b\xff", 4);
  ASSERT_TRUE(shards_->Finish(loop, 1, bytes).ok());
  ASSERT_TRUE(shards_->Finish(loop, 1, "later").ok());
  EXPECT_THAT(shards_->Finished(loop).value(), ElementsAre(1));
  EXPECT_EQ(shards_->Read(loop, 1).value(), bytes);
  ASSERT_TRUE(shards_->Finish(loop, 0, "").ok());
  EXPECT_FALSE(shards_->Take(loop, 0)->has_value());
  EXPECT_EQ(shards_->CountShards()->open, 0);
}

TEST_F(PostgresShardStoreTest, OthersFindTheOperationAsLongAsItHasShardsNobodyHasTaken) {
  const OperationAttempt attempt = Run("request");
  EXPECT_FALSE(shards_->FindToHelp("other", {})->has_value());
  const ShardLoop loop{.operation = attempt.id, .number = 0};
  ASSERT_TRUE(shards_->Open(loop, {.first = 0, .count = 5, .shards = 1}).ok());
  EXPECT_FALSE(shards_->FindToHelp("owner", {})->has_value());
  const auto found = shards_->FindToHelp("other", {}).value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->operation, attempt.id);
  EXPECT_EQ(found->request, "request");
  EXPECT_FALSE(shards_->FindToHelp("other", {"else", attempt.id})->has_value());
  ASSERT_TRUE(shards_->Take(loop, kHour).ok());
  EXPECT_FALSE(shards_->FindToHelp("other", {})->has_value());
}

TEST_F(PostgresShardStoreTest, BytesThatWereChangedAreNotRead) {
  const ShardLoop loop{.operation = Run("request").id, .number = 0};
  ASSERT_TRUE(shards_->Open(loop, {.first = 0, .count = 5, .shards = 2}).ok());
  ASSERT_TRUE(shards_->Finish(loop, 0, "some bytes").ok());
  const auto lease = database_->connections().Take();
  ASSERT_TRUE((*lease)
                  ->Script("UPDATE stepcast_shards SET bytes = set_bit(bytes, 70, 1 - "
                           "get_bit(bytes, 70)) WHERE shard = 0")
                  .ok());
  EXPECT_EQ(shards_->Read(loop, 0).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PostgresShardStoreTest, WithTheEndOfTheOperationAllIsGone) {
  const OperationAttempt attempt = Run("request");
  const ShardLoop loop{.operation = attempt.id, .number = 0};
  ASSERT_TRUE(shards_->Open(loop, {.first = 0, .count = 5, .shards = 5}).ok());
  ASSERT_TRUE(operations_->Finish(attempt, {.bytes = "result"}).ok());
  EXPECT_EQ(shards_->CountShards()->open, 0);
  EXPECT_FALSE(shards_->Take(loop, 0)->has_value());
  EXPECT_TRUE(shards_->Finish(loop, 0, "late").ok());
  EXPECT_THAT(shards_->Finished(loop).value(), IsEmpty());
  EXPECT_EQ(
      shards_->Open({.operation = attempt.id, .number = 1}, {.first = 0, .count = 5, .shards = 5})
          .status()
          .code(),
      absl::StatusCode::kNotFound);
  EXPECT_EQ(shards_->Read(loop, 0).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PostgresShardStoreTest, ReplicasThatTakeAtOnceNeverGetTheSameAndMissNone) {
  constexpr int64_t kShards = 60;
  const ShardLoop loop{.operation = Run("request").id, .number = 0};
  std::atomic<int64_t> taken = 0;
  std::vector<std::vector<int64_t>> got(4);
  std::vector<std::thread> replicas;
  for (std::vector<int64_t>& mine : got) {
    replicas.emplace_back([&] {
      const std::unique_ptr<PostgresDatabase> database = Open();
      PostgresShardStore shards(*database);
      ASSERT_TRUE(shards.Open(loop, {.first = 0, .count = kShards, .shards = kShards}).ok());
      while (taken < kShards) {
        const absl::StatusOr<std::optional<int64_t>> shard = shards.Take(loop, kHour);
        ASSERT_TRUE(shard.ok()) << shard.status();
        if (!shard->has_value()) continue;
        ++taken;
        mine.push_back(**shard);
        ASSERT_TRUE(shards.Finish(loop, **shard, absl::StrCat(**shard)).ok());
      }
    });
  }
  for (std::thread& replica : replicas) replica.join();
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& mine : got) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), static_cast<size_t>(kShards));
  for (int64_t i = 0; i < kShards; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace stepcast::server::postgres_operation_store_test
