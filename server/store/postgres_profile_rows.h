// The rows of the profiles in a PostgreSQL database: one function for each thing the store reads or
// writes.
//
// Each is one statement, within the caller's transaction if there is one. Errors are those of
// PostgresError. Threads: those of the connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/store/postgres_connection.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

absl::StatusOr<std::optional<ProfileSummary>> FindProfile(PostgresConnection& connection,
                                                          const std::string& id);
// With its content. DATA_LOSS, reason PROFILE_CORRUPT, unless the bytes have the checksum they had
// when inserted.
absl::StatusOr<std::optional<StoredProfile>> ReadProfile(PostgresConnection& connection,
                                                         const std::string& id);
// Cost: O(profiles passed over + those returned), all in the database.
absl::StatusOr<ProfilePage> ListProfiles(PostgresConnection& connection, const ListQuery& query);

// A content before the profile it belongs to; the number is for InsertProfile, in the same
// transaction. Waits for nobody.
absl::StatusOr<int64_t> InsertContent(PostgresConnection& connection, const StoredProfile& profile);
absl::Status DeleteContent(PostgresConnection& connection, int64_t sequence);
absl::Status InsertProfile(PostgresConnection& connection, int64_t sequence,
                           const ProfileSummary& summary, int64_t content_bytes);
absl::Status DeleteProfile(PostgresConnection& connection, const std::string& id);

absl::StatusOr<TotalsRow> ReadTotals(PostgresConnection& connection);
// The same, and until the transaction ends nobody else writes profiles.
absl::StatusOr<TotalsRow> LockTotals(PostgresConnection& connection);
// The owner's totals; once LockTotals was called they stay so. REQUIRES: it has a name.
absl::StatusOr<TotalsRow> ReadOwned(PostgresConnection& connection, const std::string& owner);

absl::StatusOr<std::optional<RequestRow>> FindRequest(PostgresConnection& connection,
                                                      const std::string& request_id);
// Forgets the oldest ones beyond `max_request_ids`. REQUIRES: LockTotals was called.
absl::Status InsertRequest(PostgresConnection& connection, const std::string& request_id,
                           const RequestRow& row, int64_t max_request_ids);

}  // namespace stepcast::server
