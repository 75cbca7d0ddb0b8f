// What stepcastd does instead of serving when it is asked for a copy of its data.
#pragma once

#include "absl/status/status.h"

#include "server/app/command_line.h"

namespace stepcast::server {

// Fails as BackUpSqlite and RestoreSqlite do.
absl::Status CopyData(const DataCopy& copy);

}  // namespace stepcast::server
