// The rows of the profile database: one function for each thing the store reads or writes.
//
// Each runs within the caller's transaction. Errors are those of SqliteError.
// Threads: those of the connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/store/profile_rules.h"
#include "server/store/profile_store.h"
#include "server/store/sqlite_connection.h"

namespace stepcast::server {

absl::StatusOr<std::optional<ProfileSummary>> FindProfile(SqliteConnection& connection,
                                                          const std::string& id);
// The content of a profile that is there. DATA_LOSS, reason PROFILE_CORRUPT, unless the bytes have
// the checksum they had when inserted.
absl::StatusOr<std::string> ReadContent(SqliteConnection& connection,
                                        const ProfileSummary& summary);
absl::Status InsertProfile(SqliteConnection& connection, const ProfileSummary& summary,
                           const std::string& content);
absl::Status DeleteProfile(SqliteConnection& connection, const std::string& id);
// Cost: O(profiles passed over + those returned), since the filter is applied to each.
absl::StatusOr<ProfilePage> ListProfiles(SqliteConnection& connection, const ListQuery& query);

absl::StatusOr<TotalsRow> ReadTotals(SqliteConnection& connection);
// The owner's totals. REQUIRES: it has a name.
absl::StatusOr<TotalsRow> ReadOwned(SqliteConnection& connection, const std::string& owner);

absl::StatusOr<std::optional<RequestRow>> FindRequest(SqliteConnection& connection,
                                                      const std::string& request_id);
// Forgets the oldest ones beyond `max_request_ids`.
absl::Status InsertRequest(SqliteConnection& connection, const std::string& request_id,
                           const RequestRow& row, int64_t max_request_ids);

}  // namespace stepcast::server
