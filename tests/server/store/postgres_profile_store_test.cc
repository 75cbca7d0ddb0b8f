// The promises of a store that several processes share, beyond those of every store.
#include "server/store/postgres_profile_store.h"

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "server/store/postgres_database.h"
#include "server/store/profile_store.h"
#include "tests/server/store/owning_postgres_profile_store.h"
#include "tests/server/store/postgres_test.h"
#include "tests/server/store/profile_store_kind.h"
#include "tests/server/store/sample_profile.h"

namespace stepcast::server::postgres_profile_store_test {
namespace {

class PostgresProfileStoreTest : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (!IsSkipped()) conninfo_ = server().NewDatabase();
  }

  // One process of several on the same database.
  std::unique_ptr<ProfileStore> Replica(const StoreLimits& limits = {}) {
    return OwningPostgresProfileStore::Open(conninfo_, limits, clock_);
  }

  const FakeClock clock_;
  std::string conninfo_;
};

// Waits for what another process does soon.
void Await(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

TEST_F(PostgresProfileStoreTest, ReplicasSeeEachOthersProfiles) {
  const auto one = Replica();
  const auto other = Replica();
  const auto stored = one->Put(SampleProfile("a", "content"), "request");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(other->Get("a")->summary, *stored);
  EXPECT_EQ(*other->Put(SampleProfile("a", "content"), "request"), *stored);
  EXPECT_TRUE(other->Delete("a", stored->etag).ok());
  EXPECT_EQ(one->Get("a").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PostgresProfileStoreTest, ADeletionElsewhereChangesTheGenerationAndEmptiesTheCache) {
  const auto one = Replica();
  OwningCachedProfileStore other(Replica());
  ASSERT_TRUE(one->Put(SampleProfile("a", "first"), "").ok());
  EXPECT_EQ(other.Get("a")->content, "first");
  const uint64_t before = other.Generation();
  ASSERT_TRUE(one->Delete("a", "").ok());
  ASSERT_TRUE(one->Put(SampleProfile("a", "second"), "").ok());
  Await([&] { return other.Generation() != before; });
  EXPECT_EQ(other.Get("a")->content, "second");
}

TEST_F(PostgresProfileStoreTest, ADeletionByHandIsNoticedAndCounted) {
  const auto store = Replica({.max_profiles = 1});
  ASSERT_TRUE(store->Put(SampleProfile("a", "content"), "").ok());
  const uint64_t before = store->Generation();
  ASSERT_TRUE(MustConnect(conninfo_)->Script("DELETE FROM stepcast_profiles").ok());
  Await([&] { return store->Generation() != before; });
  EXPECT_TRUE(store->Put(SampleProfile("b", "content"), "").ok());
}

TEST_F(PostgresProfileStoreTest, WhileTheDatabaseIsAwayNoGenerationComesTwiceAndCallsAreRefused) {
  const auto store = Replica();
  ASSERT_TRUE(store->Put(SampleProfile("a", "content"), "").ok());
  ASSERT_EQ(store->Generation(), store->Generation());
  EXPECT_TRUE(store->Check().ok());
  const uint64_t before = store->Generation();
  server().Stop();
  Await([&] { return !store->Check().ok(); });
  std::set<uint64_t> given = {before};
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(given.insert(store->Generation()).second);
  for (const absl::Status& status :
       {store->Get("a").status(), store->Put(SampleProfile("b", "content"), "").status(),
        store->Delete("a", ""), store->List({}).status(), store->Check()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(DetailsOf(status).reason, "STORE_UNAVAILABLE");
    EXPECT_GT(DetailsOf(status).retry_delay_ms, 0);
  }
  server().Start();
  Await([&] { return store->Check().ok(); });
  const uint64_t after = store->Generation();
  EXPECT_EQ(given.count(after), 0);
  EXPECT_EQ(store->Generation(), after);
  Await([&] { return store->Get("a").ok(); });
}

TEST_F(PostgresProfileStoreTest, LimitsAreExactThoughReplicasPutAtTheSameTime) {
  constexpr int kReplicas = 4;
  constexpr int kPuts = 30;
  const StoreLimits limits = {.max_profiles = 25, .max_total_bytes = 20 * 100};
  std::atomic<int> stored{0};
  std::vector<std::thread> replicas;
  for (int replica = 0; replica < kReplicas; ++replica) {
    replicas.emplace_back([&, replica] {
      const auto store = Replica(limits);
      for (int put = 0; put < kPuts; ++put) {
        const std::string id = absl::StrCat("p", replica, "-", put);
        const absl::Status status =
            store->Put(SampleProfile(id, std::string(100, 'x')), absl::StrCat("r", id)).status();
        if (status.ok()) {
          ++stored;
        } else {
          EXPECT_EQ(DetailsOf(status).quota_subject, "max_store_bytes") << status;
        }
      }
    });
  }
  for (std::thread& replica : replicas) replica.join();
  EXPECT_EQ(stored, 20);
  const auto totals = MustConnect(conninfo_)->Run(
      "SELECT profiles, content_bytes, (SELECT count(*) FROM stepcast_contents) FROM "
      "stepcast_totals");
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_EQ(totals->Integer(0, 0), 20);
  EXPECT_EQ(totals->Integer(0, 1), 2000);
  EXPECT_EQ(totals->Integer(0, 2), 20);
}

TEST_F(PostgresProfileStoreTest, AClientsQuotaIsExactThoughReplicasPutAtTheSameTime) {
  constexpr int kReplicas = 4;
  constexpr int kPuts = 15;
  const StoreLimits limits = {.max_client_profiles = 9, .max_client_store_bytes = 7 * 100};
  // They begin together, so that they meet where the quota ends.
  std::vector<std::unique_ptr<ProfileStore>> stores;
  for (int replica = 0; replica < kReplicas; ++replica) stores.push_back(Replica(limits));
  std::atomic<int> stored{0};
  std::vector<std::thread> replicas;
  for (int replica = 0; replica < kReplicas; ++replica) {
    replicas.emplace_back([&, replica, store = stores[static_cast<size_t>(replica)].get()] {
      for (int put = 0; put < kPuts; ++put) {
        const std::string id = absl::StrCat("p", replica, "-", put);
        const absl::Status status =
            store->Put(ProfileOf("anna", id, std::string(100, 'x')), "").status();
        if (status.ok()) {
          ++stored;
          continue;
        }
        EXPECT_EQ(DetailsOf(status).quota_subject, "client:anna") << status;
        EXPECT_TRUE(store->Put(ProfileOf("", id, std::string(100, 'x')), "").ok());
      }
    });
  }
  for (std::thread& replica : replicas) replica.join();
  EXPECT_EQ(stored, 7);
  const auto owned =
      MustConnect(conninfo_)->Run("SELECT profiles, content_bytes FROM stepcast_owners");
  ASSERT_TRUE(owned.ok()) << owned.status();
  ASSERT_EQ(owned->rows(), 1);  // nobody has none
  EXPECT_EQ(owned->Integer(0, 0), 7);
  EXPECT_EQ(owned->Integer(0, 1), 700);
}

TEST_F(PostgresProfileStoreTest, ADeletionByHandFreesItsOwnersQuota) {
  const auto store = Replica({.max_client_profiles = 1});
  ASSERT_TRUE(store->Put(ProfileOf("anna", "a", "content"), "").ok());
  ASSERT_FALSE(store->Put(ProfileOf("anna", "b", "content"), "").ok());
  ASSERT_TRUE(MustConnect(conninfo_)->Script("DELETE FROM stepcast_profiles").ok());
  EXPECT_TRUE(store->Put(ProfileOf("anna", "b", "content"), "").ok());
}

TEST_F(PostgresProfileStoreTest, ProfilesOfBeforeThereWereOwnersBelongToNobody) {
  const auto by_hand = MustConnect(conninfo_);
  ASSERT_TRUE(MigratePostgres(*by_hand, PostgresMigrations().first(2)).ok());
  // As a program of that version stores one, for a request.
  ASSERT_TRUE(by_hand
                  ->Script(absl::StrCat("INSERT INTO stepcast_profiles VALUES (DEFAULT, 'a', 'd', "
                                        "'e', '', 'm', '', '{}', '{}', 1, 1, 1, 1, 7, 5, 7); "
                                        "INSERT INTO stepcast_contents VALUES (1, ",
                                        ContentChecksum({.id = "a", .digest = "d"}, "content"),
                                        ", 'content'); INSERT INTO stepcast_requests VALUES (1, "
                                        "'request', 'a', 'd', 'e', 5)"))
                  .ok());
  const auto store = Replica({.max_client_profiles = 1});
  ASSERT_TRUE(store->Get("a").ok()) << store->Get("a").status();
  EXPECT_EQ(store->Get("a")->content, "content");
  EXPECT_EQ(store->GetSummary("a")->owner, "");
  StoredProfile again = ProfileOf("anna", "a", "content");
  again.summary.digest = "d";
  EXPECT_EQ(store->Put(again, "request")->owner, "");
  EXPECT_TRUE(store->Put(ProfileOf("anna", "b", "content"), "").ok());
  EXPECT_EQ(DetailsOf(store->Put(ProfileOf("anna", "c", "content"), "").status()).quota_subject,
            "client:anna");
  EXPECT_TRUE(store->Delete("a", "e").ok());
  // A replica that is older, and still runs, names no owner.
  ASSERT_TRUE(by_hand
                  ->Script("INSERT INTO stepcast_profiles (id, digest, etag, display_name, model, "
                           "framework, label_keys, label_values, batch_size, "
                           "parameter_servers, operation_count, step_count, size_bytes, "
                           "create_time_ns, content_bytes) "
                           "VALUES ('z', 'd', 'e', '', 'm', '', '{}', '{}', 1, 1, 1, 1, 7, 5, 7)")
                  .ok());
  EXPECT_EQ(store->GetSummary("z")->owner, "");
}

TEST_F(PostgresProfileStoreTest, TheSameRequestToManyReplicasStoresOnce) {
  constexpr int kReplicas = 6;
  std::vector<ProfileSummary> answers(kReplicas);
  std::vector<std::thread> replicas;
  for (int replica = 0; replica < kReplicas; ++replica) {
    replicas.emplace_back([&, replica] {
      const auto store = Replica();
      const auto stored = store->Put(SampleProfile("a", SampleContent(1, 100'000)), "request");
      ASSERT_TRUE(stored.ok()) << stored.status();
      answers[static_cast<size_t>(replica)] = *stored;
    });
  }
  for (std::thread& replica : replicas) replica.join();
  for (const ProfileSummary& answer : answers) EXPECT_EQ(answer, answers[0]);
  const auto count = MustConnect(conninfo_)->Run(
      "SELECT (SELECT count(*) FROM stepcast_contents), (SELECT count(*) FROM stepcast_requests)");
  EXPECT_EQ(count->Integer(0, 0), 1);
  EXPECT_EQ(count->Integer(0, 1), 1);
}

TEST_F(PostgresProfileStoreTest, DamagedContentIsFound) {
  const auto store = Replica();
  ASSERT_TRUE(store->Put(SampleProfile("a", "content"), "").ok());
  ASSERT_TRUE(store->Put(SampleProfile("b", "other content"), "").ok());
  const auto by_hand = MustConnect(conninfo_);
  for (const char* damage : {"UPDATE stepcast_contents SET bytes = 'Content' WHERE profile = 1",
                             "DELETE FROM stepcast_contents WHERE profile = 1"}) {
    ASSERT_TRUE(by_hand->Script(damage).ok());
    const absl::Status status = store->Get("a").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << damage;
    EXPECT_EQ(DetailsOf(status).reason, "PROFILE_CORRUPT");
  }
  EXPECT_TRUE(store->GetSummary("a").ok());
  EXPECT_EQ(store->Get("b")->content, "other content");
}

TEST_F(PostgresProfileStoreTest, AReplicaThatStopsWhileItWritesHoldsTheOthersForABoundedTime) {
  const auto store = Replica();
  const auto stopped = MustConnect(conninfo_, 300);
  ASSERT_TRUE(stopped->Script("BEGIN; SELECT * FROM stepcast_totals FOR UPDATE").ok());
  const auto stored = store->Put(SampleProfile("a", "content"), "");
  EXPECT_TRUE(stored.ok()) << stored.status();
}

TEST_F(PostgresProfileStoreTest, ADatabaseThatOnlyReadsRefusesWritesByName) {
  const auto store = Replica();
  ASSERT_TRUE(store->Put(SampleProfile("a", "content"), "").ok());
  const std::string name = conninfo_.substr(conninfo_.rfind('=') + 1);
  ASSERT_TRUE(
      MustConnect(conninfo_)
          ->Script(absl::StrCat("ALTER DATABASE ", name, " SET default_transaction_read_only = on"))
          .ok());
  const auto reader = Replica();
  EXPECT_TRUE(reader->Get("a").ok());
  const absl::Status refused = reader->Put(SampleProfile("b", "content"), "").status();
  EXPECT_EQ(DetailsOf(refused).reason, "STORE_UNAVAILABLE");
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("read-only"));
}

}  // namespace
}  // namespace stepcast::server::postgres_profile_store_test
