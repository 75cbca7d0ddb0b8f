#include "server/store/sqlite_backup.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "server/store/disk.h"
#include "server/store/sqlite_connection.h"
#include "server/store/sqlite_database.h"
#include "server/store/sqlite_profile_store.h"

namespace stepcast::server {

namespace {

constexpr int kPage = 100;

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

absl::Status Refused(absl::StatusCode code, const std::string& reason, const std::string& path,
                     const std::string& what) {
  return MakeError(code, absl::StrCat(path, " ", what),
                   {.reason = reason, .metadata = {{"path", path}}});
}

absl::Status CheckPages(SqliteConnection& connection) {
  SqliteStatement check = connection.Use("PRAGMA integrity_check(1)");
  const absl::StatusOr<bool> row = check.Step();
  if (!row.ok()) return row.status();
  const std::string found = *row ? check.BytesAt(0) : "nothing";
  if (found == "ok") return absl::OkStatus();
  return MakeError(absl::StatusCode::kDataLoss, absl::StrCat("the database is damaged: ", found),
                   {.reason = "STORE_CORRUPT"});
}

absl::Status CheckContents(SqliteConnection& connection) {
  ListQuery query{.limit = kPage};
  for (bool more = true; more;) {
    const absl::StatusOr<ProfilePage> page = ListProfiles(connection, query);
    if (!page.ok()) return page.status();
    for (const ProfileSummary& summary : page->profiles) {
      if (absl::Status status = ReadContent(connection, summary).status(); !status.ok())
        return status;
    }
    more = page->more;
    if (more) query.after = page->profiles.back().id;
  }
  return absl::OkStatus();
}

// A checked copy at `to`, not durable yet.
absl::Status Copy(const std::string& from, const std::string& to) {
  const absl::StatusOr<std::unique_ptr<SqliteConnection>> source =
      SqliteConnection::Open({.path = from});
  if (!source.ok()) return source.status();
  if (absl::Status ours = CheckSchema(**source); !ours.ok()) return ours;
  const absl::StatusOr<std::unique_ptr<SqliteConnection>> target =
      SqliteConnection::Open({.path = to});
  if (!target.ok()) return target.status();
  if (absl::Status copied = (*source)->CopyTo(**target); !copied.ok()) return copied;
  // One file, without a write-ahead log beside it.
  if (absl::Status alone = (*target)->Execute("PRAGMA journal_mode = DELETE"); !alone.ok())
    return alone;
  if (absl::Status pages = CheckPages(**target); !pages.ok()) return pages;
  return CheckContents(**target);
}

// The disk that is full is the one the copy goes to.
absl::Status WithPlace(const absl::Status& status, const std::string& file) {
  if (!IsDiskFull(status)) return status;
  return DiskFull({.where = absl::StrCat("the disk of ", file),
                   .todo = "free some of it, or name a place on another; nothing was left there",
                   .metadata = DetailsOf(status).metadata});
}

}  // namespace

absl::Status BackUpSqlite(const std::string& directory, const std::string& file) {
  const std::string database = absl::StrCat(directory, "/", SqliteDatabase::kFile);
  if (Exists(file))
    return Refused(absl::StatusCode::kAlreadyExists, "BACKUP_EXISTS", file, "is there already");
  if (!Exists(database))
    return Refused(absl::StatusCode::kNotFound, "STORE_MISSING", directory, "holds no database");
  const NewFile copy(file);
  if (absl::Status copied = Copy(database, copy.path()); !copied.ok())
    return WithPlace(copied, file);
  return copy.Place();
}

absl::Status RestoreSqlite(const std::string& file, const std::string& directory) {
  if (!Exists(file))
    return Refused(absl::StatusCode::kNotFound, "BACKUP_MISSING", file, "is not there");
  const absl::StatusOr<DataDirectory> owned = DataDirectory::Own(directory);
  if (!owned.ok()) return owned.status();
  const std::string database = owned->File(SqliteDatabase::kFile);
  // A log that is left would be taken for the new database's.
  for (const char* part : {"", "-wal", "-journal"}) {
    if (Exists(database + part))
      return Refused(absl::StatusCode::kAlreadyExists, "STORE_EXISTS", database + part,
                     "is there already");
  }
  const NewFile copy(database);
  if (absl::Status copied = Copy(file, copy.path()); !copied.ok())
    return WithPlace(copied, database);
  return copy.Place();
}

}  // namespace stepcast::server
