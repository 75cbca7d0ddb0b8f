// The errors that every store gives alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace stepcast::server {

// NOT_FOUND, reason PROFILE_NOT_FOUND.
absl::Status ProfileNotFound(const std::string& id);
// ALREADY_EXISTS, reason PROFILE_EXISTS.
absl::Status ProfileExists(const std::string& id, const std::string& stored_digest,
                           const std::string& digest);
// INVALID_ARGUMENT, reason REQUEST_ID_REUSED.
absl::Status RequestIdReused(const std::string& request_id, const std::string& first_id);
// ABORTED, reason ETAG_MISMATCH. An empty `stored_etag`: there is no such profile.
absl::Status EtagMismatch(const std::string& id, const std::string& etag,
                          const std::string& stored_etag);
// DATA_LOSS, reason PROFILE_CORRUPT.
absl::Status ProfileCorrupt(const std::string& id, std::string_view what);
// RESOURCE_EXHAUSTED, reason STORE_FULL. `limit` is the name of the setting.
absl::Status StoreFull(std::string_view limit, int64_t value);

// The quota use of a client: what it has of what it may have, and what more it asked for.
struct ClientUse {
  std::string client;
  std::string limit;  // the name of the field of StoreLimits
  int64_t value = 0;  // of that
  int64_t used = 0;
  int64_t wanted = 0;
};

// RESOURCE_EXHAUSTED, reason CLIENT_QUOTA_EXCEEDED. Only a deletion of the client's own makes room,
// so it is not to be retried.
absl::Status ClientQuotaExceeded(const ClientUse& use);
// UNAVAILABLE, reason STORE_UNAVAILABLE, to be retried.
absl::Status StoreUnavailable(std::string_view why);

}  // namespace stepcast::server
