// A page token: the place where a listing goes on, opaque to the caller and bound to the filter it
// was made with (AIP-158).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stepcast::server {

// `after`: the id of the last profile of the page.
std::string MakePageToken(std::string_view filter, std::string_view after);

// The id in it; empty for an empty token. INVALID_ARGUMENT, reason REQUEST_INVALID, field
// `page_token`, for what was not made here or with another filter.
absl::StatusOr<std::string> ReadPageToken(std::string_view token, std::string_view filter);

}  // namespace stepcast::server
