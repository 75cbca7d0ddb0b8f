#include "server/store/sqlite_profile_store.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "server/store/profile_store.h"
#include "server/store/sqlite_database.h"
#include "tests/server/store/child_process.h"
#include "tests/server/store/sample_profile.h"
#include "tests/server/store/temporary_directory.h"

namespace stepcast::server::sqlite_profile_store_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SqliteProfileStoreTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<SqliteProfileStore>> TryOpen() {
    return SqliteProfileStore::Open({.directory = directory_.path()}, clock_);
  }

  std::unique_ptr<SqliteProfileStore> Open() {
    auto opened = TryOpen();
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : nullptr;
  }

  std::string File() const {
    return absl::StrCat(directory_.path(), "/", SqliteProfileStore::kDatabaseFile);
  }

  // Changes the database behind the store's back. REQUIRES: the store is closed.
  void Tamper(const std::string& sql) {
    const auto connection = SqliteConnection::Open({.path = File()});
    ASSERT_TRUE(connection.ok()) << connection.status();
    const absl::Status status = (*connection)->Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }

  TemporaryDirectory directory_;
  FakeClock clock_;
};

TEST_F(SqliteProfileStoreTest, EverythingIsThereAfterReopening) {
  const StoredProfile profile = SampleProfile("a", SampleContent(7, 300'000));
  ProfileSummary stored;
  {
    const auto store = Open();
    stored = *store->Put(profile, "request");
    ASSERT_TRUE(store->Put(SampleProfile("b", "content"), "").ok());
    ASSERT_TRUE(store->Delete("b", "").ok());
  }
  const auto store = Open();
  EXPECT_EQ(store->Get("a")->summary, stored);
  EXPECT_EQ(store->Get("a")->content, profile.content);
  EXPECT_EQ(*store->Put(profile, "request"), stored);
  EXPECT_EQ(DetailsOf(store->Put(SampleProfile("c", "content"), "request").status()).reason,
            "REQUEST_ID_REUSED");
  EXPECT_THAT(store->List({})->profiles, ElementsAre(stored));
}

TEST_F(SqliteProfileStoreTest, TheQuotaCountsWhatWasThereBefore) {
  const SqliteProfileStoreOptions options = {.directory = directory_.path(),
                                             .limits = {.max_profiles = 1}};
  ASSERT_TRUE(
      (*SqliteProfileStore::Open(options, clock_))->Put(SampleProfile("a", "content"), "").ok());
  const auto store = *SqliteProfileStore::Open(options, clock_);
  EXPECT_EQ(DetailsOf(store->Put(SampleProfile("b", "content"), "").status()).quota_subject,
            "max_profiles");
}

TEST_F(SqliteProfileStoreTest, AClientsQuotaCountsWhatWasThereBefore) {
  const SqliteProfileStoreOptions options = {.directory = directory_.path(),
                                             .limits = {.max_client_profiles = 1}};
  ASSERT_TRUE((*SqliteProfileStore::Open(options, clock_))
                  ->Put(ProfileOf("anna", "a", "content"), "")
                  .ok());
  const auto store = *SqliteProfileStore::Open(options, clock_);
  EXPECT_EQ(store->GetSummary("a")->owner, "anna");
  EXPECT_EQ(DetailsOf(store->Put(ProfileOf("anna", "b", "content"), "").status()).quota_subject,
            "client:anna");
}

TEST_F(SqliteProfileStoreTest, ProfilesOfBeforeThereWereOwnersBelongToNobody) {
  {
    const auto before = SqliteConnection::Open({.path = File()});
    ASSERT_TRUE(before.ok()) << before.status();
    ASSERT_TRUE(MigrateSchema(**before, SchemaMigrations().first(2)).ok());
  }
  // As a program of that version stores one, for a request.
  Tamper(absl::StrCat(
      "INSERT INTO profiles VALUES (1, 'a', 'd', 'e', '', 'm', '', 1, 1, 1, 1, 7, 5, 7); INSERT "
      "INTO contents VALUES (1, ",
      ContentChecksum({.id = "a", .digest = "d"}, "content"),
      ", CAST('content' AS BLOB)); INSERT INTO requests VALUES (1, 'request', 'a', 'd', 'e', 5)"));
  const auto store = *SqliteProfileStore::Open(
      {.directory = directory_.path(), .limits = {.max_client_profiles = 1}}, clock_);
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
}

TEST_F(SqliteProfileStoreTest, DeletingRemovesLabelsAndContentToo) {
  {
    const auto store = Open();
    ASSERT_TRUE(store->Put(ProfileOf("anna", "a", "content"), "").ok());
    ASSERT_TRUE(store->Delete("a", "").ok());
  }
  const auto connection = SqliteConnection::Open({.path = File()});
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(
      *(*connection)
           ->IntegerOf("SELECT (SELECT count(*) FROM labels) + (SELECT count(*) FROM contents)"),
      0);
  EXPECT_EQ(*(*connection)->IntegerOf("SELECT profiles + content_bytes FROM totals"), 0);
  EXPECT_EQ(*(*connection)->IntegerOf("SELECT count(*) FROM owners"), 0);
}

TEST_F(SqliteProfileStoreTest, TheDatabaseHasAWriteAheadLogAndOurMark) {
  const auto store = Open();
  ASSERT_TRUE(store->Put(SampleProfile("a", "content"), "").ok());
  EXPECT_TRUE(std::filesystem::exists(File() + "-wal"));
  const auto other = SqliteConnection::Open({.path = File()});
  ASSERT_TRUE(other.ok()) << other.status();
  SqliteStatement mode = (*other)->Use("PRAGMA journal_mode");
  ASSERT_TRUE(*mode.Step());
  EXPECT_EQ(mode.BytesAt(0), "wal");
  EXPECT_EQ(*(*other)->IntegerOf("PRAGMA application_id"), kSqliteApplicationId);
}

TEST_F(SqliteProfileStoreTest, ReadersDoNotWaitForAWriter) {
  const auto store = Open();
  ASSERT_TRUE(store->Put(SampleProfile("a", "content"), "").ok());
  const auto other = SqliteConnection::Open({.path = File()});
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*other)->Execute("BEGIN IMMEDIATE; UPDATE profiles SET model = 'half'").ok());
  EXPECT_EQ(store->Get("a")->summary.model, "resnet50");
  EXPECT_EQ(store->List({})->profiles.size(), 1);
}

TEST_F(SqliteProfileStoreTest, ALockOfAnotherProgramIsUnavailableAfterTheTimeout) {
  const auto store =
      *SqliteProfileStore::Open({.directory = directory_.path(), .busy_timeout_ms = 1}, clock_);
  const auto other = SqliteConnection::Open({.path = File()});
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*other)->Execute("BEGIN IMMEDIATE").ok());
  const absl::Status busy = store->Put(SampleProfile("a", "content"), "").status();
  EXPECT_EQ(DetailsOf(busy).reason, "STORE_UNAVAILABLE");
  EXPECT_GT(DetailsOf(busy).retry_delay_ms, 0);
  ASSERT_TRUE((*other)->Execute("ROLLBACK").ok());
  EXPECT_TRUE(store->Put(SampleProfile("a", "content"), "").ok());
}

TEST_F(SqliteProfileStoreTest, ChangedContentIsDataLossAndItsSummaryStillReads) {
  const std::string content = SampleContent(3, 20'000);
  ASSERT_TRUE(Open()->Put(SampleProfile("a", content), "").ok());
  ASSERT_TRUE(Open()->Put(SampleProfile("b", content), "").ok());
  // One bit in the middle.
  std::string changed = content;
  changed[10'000] = static_cast<char>(changed[10'000] ^ 1);
  {
    const auto connection = SqliteConnection::Open({.path = File()});
    ASSERT_TRUE(connection.ok()) << connection.status();
    const char* sql =
        "UPDATE contents SET bytes = ? WHERE profile = (SELECT sequence FROM profiles WHERE id = "
        "'a')";
    ASSERT_TRUE((*connection)->Use(sql).Blob(changed).Run().ok());
  }
  const auto store = Open();
  const absl::Status status = store->Get("a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DetailsOf(status).reason, "PROFILE_CORRUPT");
  EXPECT_EQ(DetailsOf(status).resource.name, "profiles/a");
  EXPECT_TRUE(store->GetSummary("a").ok());
  EXPECT_EQ(store->Get("b")->content, content);
}

TEST_F(SqliteProfileStoreTest, MissingOrSwappedContentIsDataLoss) {
  ASSERT_TRUE(Open()->Put(SampleProfile("a", "content a"), "").ok());
  ASSERT_TRUE(Open()->Put(SampleProfile("b", "content b"), "").ok());
  Tamper(
      "PRAGMA foreign_keys = OFF; UPDATE contents SET profile = 3 - profile + 10; UPDATE contents "
      "SET profile = profile - 10");
  EXPECT_EQ(DetailsOf(Open()->Get("a").status()).reason, "PROFILE_CORRUPT");
  Tamper("DELETE FROM contents");
  EXPECT_EQ(DetailsOf(Open()->Get("a").status()).reason, "PROFILE_CORRUPT");
}

TEST_F(SqliteProfileStoreTest, AFileOfRubbishIsRefusedByName) {
  std::ofstream(File()) << SampleContent(5, 10'000);
  const absl::Status status = TryOpen().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(DetailsOf(status).reason, "STORE_CORRUPT");
  EXPECT_THAT(std::string(status.message()), HasSubstr(directory_.path()));
}

TEST_F(SqliteProfileStoreTest, DamagedPagesNeverPassForContent) {
  constexpr int kProfiles = 30;
  {
    const auto store = Open();
    for (int i = 0; i < kProfiles; ++i)
      ASSERT_TRUE(store->Put(SampleProfile(absl::StrCat("p", i), SampleContent(i, 9000)), "").ok());
  }
  const auto size = static_cast<int64_t>(std::filesystem::file_size(File()));
  int detected = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const int64_t at =
        4096 + static_cast<int64_t>(random() % static_cast<uint64_t>(size - 4096 - 64));
    std::string before(64, '\0');
    std::fstream file(File(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at).read(before.data(), 64);
    file.seekp(at).write(SampleContent(seed, 64).data(), 64).flush();
    if (const auto store = TryOpen(); store.ok()) {
      for (int i = 0; i < kProfiles; ++i) {
        const absl::StatusOr<StoredProfile> got = (*store)->Get(absl::StrCat("p", i));
        if (got.ok()) {
          ASSERT_EQ(got->content, SampleContent(i, 9000)) << "profile " << i;
        } else {
          ++detected;
          ASSERT_THAT(got.status().code(),
                      testing::AnyOf(absl::StatusCode::kDataLoss, absl::StatusCode::kNotFound))
              << got.status();
        }
      }
    }
    file.seekp(at).write(before.data(), 64).flush();
  }
  EXPECT_GT(detected, 0);
}

TEST_F(SqliteProfileStoreTest, ANewerSchemaIsRefusedByName) {
  ASSERT_NE(Open(), nullptr);
  Tamper(absl::StrCat("PRAGMA user_version = ", kSchemaVersion + 1));
  const absl::Status status = TryOpen().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailsOf(status).reason, "STORE_SCHEMA_TOO_NEW");
  EXPECT_THAT(std::string(status.message()), HasSubstr(directory_.path()));
}

TEST_F(SqliteProfileStoreTest, TwoProcessesCannotShareADirectory) {
  const auto store = Open();
  EXPECT_EQ(InChild([&] {
              return DetailsOf(TryOpen().status()).reason == "DATA_DIRECTORY_IN_USE" ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(store->Put(SampleProfile("a", "content"), "").ok());
}

TEST_F(SqliteProfileStoreTest, AReadOnlyDirectoryIsRefusedAtStart) {
  ASSERT_TRUE(Open()->Put(SampleProfile("a", "content"), "").ok());
  std::filesystem::permissions(directory_.path(), std::filesystem::perms(0555));
  EXPECT_EQ(InChild([&] {
              constexpr uid_t kNobody = 65534;
              if (geteuid() == 0 && setuid(kNobody) != 0) return 2;  // root may write anywhere
              return DetailsOf(TryOpen().status()).reason == "STORE_UNAVAILABLE" ? 0 : 1;
            }),
            0);
}

TEST_F(SqliteProfileStoreTest, AFullDiskRefusesThePutAndKeepsTheRest) {
  // A limit on the size of files stands for the disk. It applies to the whole process, hence the
  // child.
  const auto body = [&]() -> int {
    const auto store = Open();
    if (!store->Put(SampleProfile("a", "content"), "").ok()) return 1;
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small = {.rlim_cur = 200'000, .rlim_max = limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    const absl::Status full =
        store->Put(SampleProfile("b", SampleContent(1, 500'000)), "request").status();
    if (full.code() != absl::StatusCode::kUnavailable ||
        DetailsOf(full).reason != "STORE_UNAVAILABLE")
      return 2;
    if (DetailsOf(full).retry_delay_ms <= 0) return 3;
    if (store->Get("a")->content != "content" ||
        store->Get("b").status().code() != absl::StatusCode::kNotFound)
      return 4;
    setrlimit(RLIMIT_FSIZE, &limit);
    return store->Put(SampleProfile("b", SampleContent(1, 500'000)), "request").ok() ? 0 : 5;
  };
  EXPECT_EQ(InChild(body), 0);
  const auto store = Open();
  EXPECT_EQ(store->List({})->profiles.size(), 2);
  EXPECT_EQ(store->Get("b")->content, SampleContent(1, 500'000));
}

TEST_F(SqliteProfileStoreTest, ARemovedFileIsUnavailableNotSilentLoss) {
  const auto store = Open();
  ASSERT_TRUE(store->Put(SampleProfile("a", "content"), "").ok());
  ASSERT_TRUE(store->Check().ok());
  std::filesystem::remove(File());
  EXPECT_EQ(DetailsOf(store->Put(SampleProfile("b", "content"), "").status()).reason,
            "STORE_UNAVAILABLE");
  EXPECT_EQ(DetailsOf(store->Delete("a", "")).reason, "STORE_UNAVAILABLE");
  EXPECT_EQ(DetailsOf(store->Check()).reason, "STORE_UNAVAILABLE");
}

}  // namespace
}  // namespace stepcast::server::sqlite_profile_store_test
