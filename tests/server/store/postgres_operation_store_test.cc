#include "server/store/postgres_operation_store.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
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

}  // namespace
}  // namespace stepcast::server::postgres_operation_store_test
