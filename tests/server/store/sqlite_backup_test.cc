#include "server/store/sqlite_backup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "server/base/clock.h"
#include "server/store/sqlite_database.h"
#include "server/store/sqlite_profile_store.h"
#include "tests/server/store/sample_profile.h"
#include "tests/server/store/temporary_directory.h"

namespace stepcast::server::sqlite_backup_test {
namespace {

std::string ContentOf(int number) {
  return SampleContent(static_cast<uint64_t>(number),
                       1 + static_cast<size_t>(number) * 997 % 20'000);
}
std::string IdOf(int number) { return absl::StrCat("p", 1'000'000 + number); }

class SqliteBackupTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const {
    return absl::StrCat(directory_.path(), "/", name);
  }

  std::unique_ptr<SqliteProfileStore> Store(const std::string& name) {
    auto store = SqliteProfileStore::Open({.directory = Path(name)}, clock_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  // A backup of a store with one profile.
  void MakeBackup(const std::string& name) {
    const auto store = Store("data");
    ASSERT_TRUE(store->Put(SampleProfile("a", ContentOf(1)), "").ok());
    const absl::Status made = BackUpSqlite(Path("data"), Path(name));
    ASSERT_TRUE(made.ok()) << made;
  }

  int FilesIn(const std::string& name) const {
    int files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(Path(name)))
      ++files;
    return files;
  }

  const TemporaryDirectory directory_;
  const FakeClock clock_;
};

TEST_F(SqliteBackupTest, OthersMayNotReadACopyAndWhatRootMakesIsTheDirectorysOwners) {
  MakeBackup("backup");
  constexpr auto kOthers = std::filesystem::perms::others_all;
  EXPECT_EQ(std::filesystem::status(Path("backup")).permissions() & kOthers,
            std::filesystem::perms::none);
  if (geteuid() != 0) GTEST_SKIP() << "only root makes files for others";
  constexpr uid_t kNobody = 65534;
  std::filesystem::create_directory(Path("new"));
  ASSERT_EQ(chown(Path("new").c_str(), kNobody, kNobody), 0);
  ASSERT_TRUE(RestoreSqlite(Path("backup"), Path("new")).ok());
  for (const auto& file : std::filesystem::directory_iterator(Path("new"))) {
    struct stat facts {};
    ASSERT_EQ(stat(file.path().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_uid, kNobody) << file.path();
  }
}

void ExpectRefused(const absl::Status& status, const std::string& reason) {
  EXPECT_EQ(DetailsOf(status).reason, reason) << status;
}

TEST_F(SqliteBackupTest, ABackupUnderWritesIsAPrefixWithAllThatWasAcknowledgedBefore) {
  constexpr int kBackups = 5;
  const auto store = Store("data");
  std::atomic<int> acknowledged{0};
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int number = 0; !done; ++number) {
      ASSERT_TRUE(store->Put(SampleProfile(IdOf(number), ContentOf(number)), "").ok());
      acknowledged = number + 1;
    }
  });
  int wanted = 10;
  for (int backup = 0; backup < kBackups; ++backup, wanted = acknowledged + 10) {
    while (acknowledged < wanted) std::this_thread::yield();
    const int before = acknowledged;
    const std::string file = Path(absl::StrCat("backup", backup));
    const absl::Status made = BackUpSqlite(Path("data"), file);
    ASSERT_TRUE(made.ok()) << made;
    const std::string place = absl::StrCat("restored", backup);
    const absl::Status restored = RestoreSqlite(file, Path(place));
    ASSERT_TRUE(restored.ok()) << restored;
    const auto copy = Store(place);
    const auto page = copy->List({.limit = 1'000'000});
    ASSERT_TRUE(page.ok()) << page.status();
    const int count = static_cast<int>(page->profiles.size());
    EXPECT_GE(count, before);
    for (int number = 0; number < count; ++number) {
      const auto got = copy->Get(IdOf(number));
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(got->content == ContentOf(number));
    }
    EXPECT_TRUE(copy->Put(SampleProfile("new", "content"), "").ok());
  }
  done = true;
  writer.join();
}

TEST_F(SqliteBackupTest, ABackupOfAStoppedStoreIsOneFile) {
  MakeBackup("backups_a");
  std::filesystem::create_directory(Path("folder"));
  ASSERT_TRUE(BackUpSqlite(Path("data"), Path("folder/b")).ok());
  EXPECT_EQ(FilesIn("folder"), 1);
}

TEST_F(SqliteBackupTest, AFileThatIsThereIsRefusedAndStays) {
  MakeBackup("backup");
  const auto size = std::filesystem::file_size(Path("backup"));
  std::ofstream(Path("other")) << "mine";
  for (const char* name : {"backup", "other"})
    ExpectRefused(BackUpSqlite(Path("data"), Path(name)), "BACKUP_EXISTS");
  EXPECT_EQ(std::filesystem::file_size(Path("backup")), size);
  EXPECT_EQ(std::filesystem::file_size(Path("other")), 4);
}

TEST_F(SqliteBackupTest, WhereThereIsNothingToCopyNothingIsMade) {
  ExpectRefused(BackUpSqlite(Path("none"), Path("backup")), "STORE_MISSING");
  ExpectRefused(RestoreSqlite(Path("backup"), Path("data")), "BACKUP_MISSING");
  EXPECT_EQ(FilesIn(""), 0);
}

TEST_F(SqliteBackupTest, ADirectoryInUseOrWithADatabaseIsNotRestoredTo) {
  MakeBackup("backup");
  ExpectRefused(RestoreSqlite(Path("backup"), Path("data")), "STORE_EXISTS");
  const auto store = Store("data");
  ExpectRefused(RestoreSqlite(Path("backup"), Path("data")), "DATA_DIRECTORY_IN_USE");
  EXPECT_TRUE(store->Get("a").ok());
  std::filesystem::create_directory(Path("log"));
  std::ofstream(Path("log/profiles.sqlite3-wal")) << "left";
  ExpectRefused(RestoreSqlite(Path("backup"), Path("log")), "STORE_EXISTS");
}

TEST_F(SqliteBackupTest, ABackupThatIsNotWholeIsRefusedAndLeavesNothing) {
  MakeBackup("backup");
  const auto size = std::filesystem::file_size(Path("backup"));
  const auto with_damage = [&](const std::string& name, const std::string& reason) {
    ExpectRefused(RestoreSqlite(Path(name), Path("restored")), reason);
    EXPECT_EQ(FilesIn("restored"), 1) << name;  // the lock
  };
  std::filesystem::copy_file(Path("backup"), Path("cut"));
  std::filesystem::resize_file(Path("cut"), size / 2);
  with_damage("cut", "STORE_CORRUPT");
  std::ofstream(Path("text")) << std::string(10'000, 'x');
  with_damage("text", "STORE_CORRUPT");
  std::ofstream(Path("empty")) << "";
  with_damage("empty", "STORE_FOREIGN");
  const auto edited = [&](const std::string& name, const std::string& sql) {
    std::filesystem::copy_file(Path("backup"), Path(name));
    ASSERT_TRUE((*SqliteConnection::Open({.path = Path(name)}))->Execute(sql).ok());
  };
  edited("newer", absl::StrCat("PRAGMA user_version = ", kSchemaVersion + 1));
  with_damage("newer", "STORE_SCHEMA_TOO_NEW");
  edited("content", "UPDATE contents SET bytes = x'00'");
  with_damage("content", "PROFILE_CORRUPT");
  EXPECT_TRUE(RestoreSqlite(Path("backup"), Path("restored")).ok());
}

TEST_F(SqliteBackupTest, ADamagedStoreIsNotBackedUp) {
  MakeBackup("first");
  ASSERT_TRUE((*SqliteConnection::Open({.path = Path("data/profiles.sqlite3")}))
                  ->Execute("UPDATE contents SET bytes = x'00'")
                  .ok());
  ExpectRefused(BackUpSqlite(Path("data"), Path("second")), "PROFILE_CORRUPT");
  EXPECT_FALSE(std::filesystem::exists(Path("second")));
}

}  // namespace
}  // namespace stepcast::server::sqlite_backup_test
