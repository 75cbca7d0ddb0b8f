// The rules of a Put that all stores share: whether a request was there before, and whether there
// is room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/store/profile_store.h"
#include "server/store/store_limits.h"

namespace stepcast::server {

// The profile that a request_id stored, when it was new.
struct RequestRow {
  std::string profile_id;
  std::string digest;
  std::string etag;
  std::string owner;
  int64_t create_time_ns = 0;
};

// The totals of the whole store, or of one owner.
struct TotalsRow {
  int64_t profiles = 0;
  int64_t content_bytes = 0;
};

// The answer to a repetition of the request that left `first`: what it stored, though it may be
// deleted since. `there` is what has the id now. REQUEST_ID_REUSED if `summary` is of something
// else.
absl::StatusOr<ProfileSummary> AnswerAgain(const std::string& request_id, const RequestRow& first,
                                           const std::optional<ProfileSummary>& there,
                                           const ProfileSummary& summary);

// STORE_FULL if one more profile with so many bytes is too much.
absl::Status CheckRoom(const TotalsRow& totals, const StoreLimits& limits, int64_t new_bytes);

// True if the owner has a limit of its own, so that what it has must be known.
bool HasShareLimit(const std::string& owner, const StoreLimits& limits);
// CLIENT_QUOTA_EXCEEDED if one more profile with so many bytes is too much for the owner. REQUIRES:
// HasShareLimit.
absl::Status CheckShare(const std::string& owner, const TotalsRow& owned, const StoreLimits& limits,
                        int64_t new_bytes);

}  // namespace stepcast::server
