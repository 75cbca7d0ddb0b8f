#include "server/app/data_copy.h"

#include "server/store/sqlite_backup.h"

namespace stepcast::server {

absl::Status CopyData(const DataCopy& copy) {
  return copy.restore_from.empty() ? BackUpSqlite(copy.data_dir, copy.backup_to)
                                   : RestoreSqlite(copy.restore_from, copy.data_dir);
}

}  // namespace stepcast::server
