// The parts of a listing's request: its filter, and the token of its page.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "server/store/profile_store.h"

namespace stepcast::server {

// The filter of ListProfiles, a part of AIP-160:
//
//   filter = [ term { "AND" term } ]
//   term   = "model" "=" value | "labels" "." key "=" value | "labels" ":" key
//   key    = word | string      value = word | string
//   word   = letters, digits, "_", "-", "." and "/" (a key: no ".")
//   string = '"' characters, \" and \\ '"'
inline constexpr size_t kMaxFilterBytes = 4096;

// INVALID_ARGUMENT, reason REQUEST_INVALID, field `filter`, with the place of the error.
absl::StatusOr<ProfileFilter> ParseProfileFilter(std::string_view text);

// A page token: the place where a listing goes on, opaque to the caller and bound to the filter it
// was made with (AIP-158).
// `after`: the id of the last profile of the page.
std::string MakePageToken(std::string_view filter, std::string_view after);

// The id in it; empty for an empty token. INVALID_ARGUMENT, reason REQUEST_INVALID, field
// `page_token`, for what was not made here or with another filter.
absl::StatusOr<std::string> ReadPageToken(std::string_view token, std::string_view filter);

}  // namespace stepcast::server
