// The filter of ListProfiles, a part of AIP-160:
//
//   filter = [ term { "AND" term } ]
//   term   = "model" "=" value | "labels" "." key "=" value | "labels" ":" key
//   key    = word | string      value = word | string
//   word   = letters, digits, "_", "-", "." and "/" (a key: no ".")
//   string = '"' characters, \" and \\ '"'
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

#include "server/store/profile_store.h"

namespace stepcast::server {

inline constexpr size_t kMaxFilterBytes = 4096;

// INVALID_ARGUMENT, reason REQUEST_INVALID, field `filter`, with the place of the error.
absl::StatusOr<ProfileFilter> ParseProfileFilter(std::string_view text);

}  // namespace stepcast::server
