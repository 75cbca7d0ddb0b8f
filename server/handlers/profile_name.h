// Names of profiles: `profiles/{id}`, and the ids a caller or the digest gives (AIP-122, AIP-155).
//
// An id is 1 to 63 characters of a-z, 0-9 and -, begins with a letter and does not end with -.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/error.h"
#include "server/convert/profile_requests.h"

namespace stepcast::server {

bool IsProfileId(std::string_view id);

// The id of a profile nobody named: `p-` and the first 20 digits of its digest. 80 bits: a store of
// 2^32 profiles meets a collision, which is refused with ALREADY_EXISTS, with a probability of
// 1e-5.
std::string DerivedProfileId(std::string_view digest);

std::string ProfileName(std::string_view id);

// INVALID_ARGUMENT, reason REQUEST_INVALID, at `field`.
absl::StatusOr<std::string> ProfileIdOf(std::string_view name, std::string_view field);

// The faults of a placement's ids; `prefix` (empty, or ending with a dot) goes before the field.
// A request id is a UUID in its usual form.
std::vector<Fault> FaultsOf(const ProfilePlacement& placement, std::string_view prefix);

}  // namespace stepcast::server
