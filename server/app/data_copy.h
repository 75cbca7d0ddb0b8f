// The backup and the restore of stepcastd's data, which it does instead of serving when it is asked
// to.
#pragma once

#include "absl/status/status.h"

#include "server/app/command_line.h"

namespace stepcast::server {

// Fails as BackUpSqlite and RestoreSqlite do.
absl::Status CopyData(const DataCopy& copy);

}  // namespace stepcast::server
