// Copies of the SQLite database of a data directory, to keep and to begin again from.
//
// A copy is checked, page by page and content by content, before it gets its name, so what has the
// name is whole; it survives a power failure. Cost: reads the database twice. Errors: those of
// SqliteError, and reason STORE_CORRUPT where what was copied is damaged.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace stepcast::server {

// Everything that was acknowledged before the call, and nothing in part. Others may use the
// database meanwhile and are not held up. ALREADY_EXISTS, reason BACKUP_EXISTS, if there is such a
// file; NOT_FOUND, reason STORE_MISSING, if the directory has no database.
absl::Status BackUpSqlite(const std::string& directory, const std::string& file);

// Makes the directory if it is missing. NOT_FOUND, reason BACKUP_MISSING, if there is no such file;
// ALREADY_EXISTS, reason STORE_EXISTS, if the directory has a database; FAILED_PRECONDITION if
// another process has the directory (DATA_DIRECTORY_IN_USE), or if the file is of a newer program
// (STORE_SCHEMA_TOO_NEW) or of another one (STORE_FOREIGN).
absl::Status RestoreSqlite(const std::string& file, const std::string& directory);

}  // namespace stepcast::server
