// Etags of stored profiles.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace stepcast::server {

// A new one on every call: 128 random bits of the operating system in hex, so a profile that is
// deleted and stored again gets another. UNAVAILABLE, reason STORE_UNAVAILABLE, if the system has
// no random bits.
absl::StatusOr<std::string> NewEtag();

}  // namespace stepcast::server
